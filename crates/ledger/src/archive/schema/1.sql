CREATE TABLE journeys (
    id INTEGER PRIMARY KEY,            -- rises with the time of acceptance; a request id may be used twice
    request_id TEXT NOT NULL,
    caller TEXT,                       -- NULL: callers needed no key
    route TEXT NOT NULL,               -- 'direct' where the caller named provider/model
    model_requested TEXT NOT NULL,
    dialect TEXT NOT NULL,             -- the caller's
    operation TEXT NOT NULL,           -- what was asked for
    stream INTEGER NOT NULL,
    caller_retry INTEGER,              -- x-stainless-retry-count
    started_ms INTEGER NOT NULL,       -- wall time, since 1970
    config_version INTEGER NOT NULL,
    terminal_reason TEXT,              -- NULL: under way; 'unknown': its process ended before it did
    status INTEGER,                    -- NULL: the caller had left
    provider TEXT,
    model_served TEXT,
    action TEXT,
    total_ms INTEGER,
    delivered_events INTEGER,
    tool_call_ids TEXT                 -- JSON; not filled yet
) STRICT;
CREATE INDEX journeys_request_id ON journeys (request_id);
CREATE INDEX journeys_started ON journeys (started_ms);

CREATE TABLE attempts (
    journey INTEGER NOT NULL,          -- journeys.id
    seq INTEGER NOT NULL,              -- place in the trail, skipped channels included
    attempt INTEGER,                   -- place among the sends; NULL: never sent
    action TEXT NOT NULL,
    channel TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    key_name TEXT,
    dialect TEXT,                      -- spoken to the provider
    config_version INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    queue_ms INTEGER,
    waited_ms INTEGER,
    outcome TEXT,                      -- NULL: under way; 'unknown': its process ended before it did
    class TEXT,
    failure_kind TEXT,
    signal TEXT,
    fail_reason TEXT,
    provider_code TEXT,
    status INTEGER,
    phase TEXT,
    upstream_phase TEXT,
    started_output INTEGER,
    connection TEXT,
    connect_ms INTEGER,
    headers_ms INTEGER,
    first_output_ms INTEGER,
    total_ms INTEGER,
    retry_after_ms INTEGER,
    input_tokens INTEGER,              -- NULL: not told; 0 is a number
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    cost_micro_usd INTEGER,            -- NULL: no price, or usage not told
    PRIMARY KEY (journey, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE segments (
    name TEXT PRIMARY KEY,
    indexed INTEGER NOT NULL           -- bytes of it that are in the tables
) STRICT, WITHOUT ROWID;
