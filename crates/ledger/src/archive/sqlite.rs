//! The embedded archive: one SQLite file in WAL mode, which others may read while it is written.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, named_params, params};

use super::{Archive, schema};
use crate::Error;
use crate::entry::{AttemptEntry, Entry, JourneyEntry};

/// How many journeys one pruning step removes: small, so that readers are not held up.
const STEP: i64 = 500;

/// How long a statement waits for another process's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// An embedded archive.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    /// The file, made where it is missing, with the schema of this build. `survives_power`: whether
    /// a commit waits for the disk.
    pub(crate) fn open(path: &Path, survives_power: bool) -> Result<Self, Error> {
        // SQLite would make it readable to others; its -wal and -shm files take after it.
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        schema::migrate(&mut connection)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = if survives_power { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)?;
        Ok(Self { connection })
    }

    /// A file that another process may be writing, for questions alone.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(PATIENCE)?;
        let found = schema::version(&connection)?;
        if found > schema::VERSION {
            return Err(Error::NewerSchema {
                found,
                known: schema::VERSION,
            });
        }
        if found < schema::VERSION {
            return Err(Error::OlderSchema {
                found,
                known: schema::VERSION,
            });
        }
        Ok(Self { connection })
    }

    /// An archive in memory, for records that are not in the file yet.
    pub(crate) fn in_memory() -> Result<Self, Error> {
        let mut connection = Connection::open_in_memory()?;
        schema::migrate(&mut connection)?;
        Ok(Self { connection })
    }

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Removes the journeys that `choose` selects, with their attempts.
    fn prune(&mut self, choose: &str, bound: i64) -> Result<usize, Error> {
        let transaction = self.connection.transaction()?;
        let ids: Vec<i64> = {
            let mut chosen = transaction.prepare_cached(choose)?;
            let ids = chosen.query_map(params![bound, STEP], |row| row.get(0))?;
            ids.collect::<Result<_, _>>()?
        };
        for id in &ids {
            transaction
                .prepare_cached("DELETE FROM attempts WHERE journey = ?1")?
                .execute([id])?;
            transaction
                .prepare_cached("DELETE FROM journeys WHERE id = ?1")?
                .execute([id])?;
        }
        transaction.commit()?;
        Ok(ids.len())
    }
}

impl Archive for Sqlite {
    fn offset(&mut self, segment: &str) -> Result<u64, Error> {
        let offset: Option<i64> = self
            .connection
            .prepare_cached("SELECT indexed FROM segments WHERE name = ?1")?
            .query_row([segment], |row| row.get(0))
            .optional()?;
        Ok(offset.and_then(|at| u64::try_from(at).ok()).unwrap_or(0))
    }

    fn put(&mut self, segment: &str, offset: u64, entries: &[Entry<'_>]) -> Result<(), Error> {
        let transaction = self.connection.transaction()?;
        for entry in entries {
            match entry {
                Entry::Begin(journey) | Entry::End(journey) => put_journey(&transaction, journey)?,
                Entry::Sending(attempt) | Entry::Attempt(attempt) => {
                    put_attempt(&transaction, attempt)?;
                }
                Entry::Mark => {}
            }
        }
        transaction
            .prepare_cached(
                "INSERT INTO segments (name, indexed) VALUES (?1, ?2) \
                 ON CONFLICT (name) DO UPDATE SET indexed = excluded.indexed",
            )?
            .execute(params![segment, i64::try_from(offset).unwrap_or(i64::MAX)])?;
        transaction.commit()?;
        Ok(())
    }

    fn forget(&mut self, segment: &str) -> Result<(), Error> {
        self.connection
            .prepare_cached("DELETE FROM segments WHERE name = ?1")?
            .execute([segment])?;
        Ok(())
    }

    fn settle_before(&mut self, id: i64) -> Result<(), Error> {
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "UPDATE attempts SET outcome = 'unknown' WHERE outcome IS NULL AND journey < ?1",
            [id],
        )?;
        transaction.execute(
            "UPDATE journeys SET terminal_reason = 'unknown' \
             WHERE terminal_reason IS NULL AND id < ?1",
            [id],
        )?;
        transaction.commit()?;
        Ok(())
    }

    fn prune_before(&mut self, started_ms: i64) -> Result<usize, Error> {
        let choose = "SELECT id FROM journeys WHERE started_ms < ?1 ORDER BY started_ms LIMIT ?2";
        self.prune(choose, started_ms)
    }

    fn prune_oldest(&mut self) -> Result<usize, Error> {
        let choose = "SELECT id FROM journeys WHERE id <= ?1 ORDER BY id LIMIT ?2";
        self.prune(choose, i64::MAX)
    }

    fn shrink(&mut self) -> Result<(), Error> {
        // It gives back a page for each row that is asked for.
        let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum(4096)")?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    }

    fn size(&mut self) -> Result<u64, Error> {
        let pragma = |name| -> Result<i64, Error> {
            let question = format!("PRAGMA {name}");
            Ok(self.connection.query_row(&question, [], |row| row.get(0))?)
        };
        let pages = pragma("page_count")? - pragma("freelist_count")?;
        Ok(u64::try_from(pages * pragma("page_size")?).unwrap_or(0))
    }

    fn last_id(&mut self) -> Result<Option<i64>, Error> {
        let question = "SELECT max(id) FROM journeys";
        Ok(self.connection.query_row(question, [], |row| row.get(0))?)
    }

    fn last_segment(&mut self) -> Result<Option<String>, Error> {
        let question = "SELECT max(name) FROM segments";
        Ok(self.connection.query_row(question, [], |row| row.get(0))?)
    }
}

/// What is known is kept, whichever of a journey's records comes first.
fn put_journey(transaction: &Transaction<'_>, entry: &JourneyEntry<'_>) -> Result<(), Error> {
    transaction
        .prepare_cached(PUT_JOURNEY)?
        .execute(named_params! {
            ":id": entry.id,
            ":request_id": entry.request_id,
            ":caller": entry.caller,
            ":route": entry.route,
            ":model_requested": entry.model_requested,
            ":dialect": entry.dialect,
            ":operation": entry.operation,
        ":stream": entry.stream,
            ":caller_retry": entry.caller_retry,
            ":started_ms": entry.started_ms,
            ":config_version": signed(entry.config_version),
            ":terminal_reason": entry.terminal_reason,
            ":status": entry.status,
            ":provider": entry.provider,
            ":model_served": entry.model_served,
            ":action": entry.action,
            ":total_ms": entry.total_ms.map(signed),
            ":delivered_events": entry.delivered_events.map(signed),
        })?;
    Ok(())
}

const PUT_JOURNEY: &str = "\
INSERT INTO journeys (id, request_id, caller, route, model_requested, dialect, operation, stream,
    caller_retry, started_ms, config_version, terminal_reason, status, provider, model_served, action, total_ms,
    delivered_events)
VALUES (:id, :request_id, :caller, :route, :model_requested, :dialect, :operation, :stream,
    :caller_retry, :started_ms, :config_version, :terminal_reason, :status, :provider, :model_served, :action,
    :total_ms, :delivered_events)
ON CONFLICT (id) DO UPDATE SET
    terminal_reason = coalesce(excluded.terminal_reason, terminal_reason),
    status = coalesce(excluded.status, status),
    provider = coalesce(excluded.provider, provider),
    model_served = coalesce(excluded.model_served, model_served),
    action = coalesce(excluded.action, action),
    total_ms = coalesce(excluded.total_ms, total_ms),
    delivered_events = coalesce(excluded.delivered_events, delivered_events)";

/// As [`put_journey`], for a row.
fn put_attempt(transaction: &Transaction<'_>, entry: &AttemptEntry<'_>) -> Result<(), Error> {
    transaction
        .prepare_cached(PUT_ATTEMPT)?
        .execute(named_params! {
            ":journey": entry.journey,
            ":seq": entry.seq,
            ":attempt": entry.attempt,
            ":action": entry.action,
            ":channel": entry.channel,
            ":provider": entry.provider,
            ":model": entry.model,
            ":key_name": entry.key_name,
            ":dialect": entry.dialect,
            ":config_version": signed(entry.config_version),
            ":started_ms": entry.started_ms,
            ":queue_ms": entry.queue_ms.map(signed),
            ":waited_ms": entry.waited_ms.map(signed),
            ":outcome": entry.outcome,
            ":class": entry.class,
            ":failure_kind": entry.failure_kind,
            ":signal": entry.signal,
            ":fail_reason": entry.fail_reason,
            ":provider_code": entry.provider_code,
            ":status": entry.status,
            ":phase": entry.phase,
            ":upstream_phase": entry.upstream_phase,
            ":started_output": entry.started_output,
            ":connection": entry.connection,
            ":connect_ms": entry.connect_ms.map(signed),
            ":headers_ms": entry.headers_ms.map(signed),
            ":first_output_ms": entry.first_output_ms.map(signed),
            ":total_ms": entry.total_ms.map(signed),
            ":retry_after_ms": entry.retry_after_ms.map(signed),
            ":input_tokens": entry.input_tokens.map(signed),
            ":cache_read_tokens": entry.cache_read_tokens.map(signed),
            ":cache_write_tokens": entry.cache_write_tokens.map(signed),
            ":output_tokens": entry.output_tokens.map(signed),
            ":reasoning_tokens": entry.reasoning_tokens.map(signed),
            ":cost_micro_usd": entry.cost_micro_usd,
        })?;
    Ok(())
}

/// A row that ended says all there is to say, but for the dialect, which its start knows.
const PUT_ATTEMPT: &str = "\
INSERT INTO attempts (journey, seq, attempt, action, channel, provider, model, key_name, dialect,
    config_version, started_ms, queue_ms, waited_ms, outcome, class, failure_kind, signal,
    fail_reason, provider_code, status, phase, upstream_phase, started_output, connection,
    connect_ms, headers_ms, first_output_ms, total_ms, retry_after_ms, input_tokens,
    cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_micro_usd)
VALUES (:journey, :seq, :attempt, :action, :channel, :provider, :model, :key_name, :dialect,
    :config_version, :started_ms, :queue_ms, :waited_ms, :outcome, :class, :failure_kind, :signal,
    :fail_reason, :provider_code, :status, :phase, :upstream_phase, :started_output, :connection,
    :connect_ms, :headers_ms, :first_output_ms, :total_ms, :retry_after_ms, :input_tokens,
    :cache_read_tokens, :cache_write_tokens, :output_tokens, :reasoning_tokens, :cost_micro_usd)
ON CONFLICT (journey, seq) DO UPDATE SET
    dialect = coalesce(excluded.dialect, dialect),
    outcome = coalesce(excluded.outcome, outcome),
    class = coalesce(excluded.class, class),
    failure_kind = coalesce(excluded.failure_kind, failure_kind),
    signal = coalesce(excluded.signal, signal),
    fail_reason = coalesce(excluded.fail_reason, fail_reason),
    provider_code = coalesce(excluded.provider_code, provider_code),
    status = coalesce(excluded.status, status),
    phase = coalesce(excluded.phase, phase),
    upstream_phase = coalesce(excluded.upstream_phase, upstream_phase),
    started_output = coalesce(excluded.started_output, started_output),
    connection = coalesce(excluded.connection, connection),
    connect_ms = coalesce(excluded.connect_ms, connect_ms),
    headers_ms = coalesce(excluded.headers_ms, headers_ms),
    first_output_ms = coalesce(excluded.first_output_ms, first_output_ms),
    total_ms = coalesce(excluded.total_ms, total_ms),
    retry_after_ms = coalesce(excluded.retry_after_ms, retry_after_ms),
    input_tokens = coalesce(excluded.input_tokens, input_tokens),
    cache_read_tokens = coalesce(excluded.cache_read_tokens, cache_read_tokens),
    cache_write_tokens = coalesce(excluded.cache_write_tokens, cache_write_tokens),
    output_tokens = coalesce(excluded.output_tokens, output_tokens),
    reasoning_tokens = coalesce(excluded.reasoning_tokens, reasoning_tokens),
    cost_micro_usd = coalesce(excluded.cost_micro_usd, cost_micro_usd)";

/// SQLite's integers have a sign.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
