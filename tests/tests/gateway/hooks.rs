//! Hooks: code of others that answers, refuses, or forbids to go on.

use std::future::pending;
use std::sync::{Arc, Mutex};

use backstop_faultsim::{Fault, Script, Sim, Step};
use backstop_server::{Aftermath, Hook, HookAsk, HookDecision, HookError, Say};
use backstop_tests::{CANARY, TestGateway, until};

use crate::common::{as_scripted, ask, ask_stream, column, provider, untouched, with_backup};

/// Says the same thing whenever it is asked at this place, and remembers what it was asked.
struct Scripted {
    at: &'static str,
    says: fn(&HookAsk) -> Say<'static>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn new(at: &'static str, says: fn(&HookAsk) -> Say<'static>) -> Arc<Self> {
        let asked = Mutex::default();
        Arc::new(Self { at, says, asked })
    }

    fn say(&self, when: &str, ask: &HookAsk) -> Say<'static> {
        let (place, shown) = (
            format!("{when} {}", ask.channel.provider),
            format!("{ask:?}"),
        );
        assert!(!shown.contains(CANARY) && !shown.contains("Say something"));
        assert!(!format!("{:?}", ask.channel).contains(CANARY));
        let says = if place == self.at {
            (self.says)(ask)
        } else {
            HookDecision::Pass.into()
        };
        self.asked.lock().expect("no panic").push(place);
        says
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Hook for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn before_attempt<'a>(&'a self, ask: &'a HookAsk) -> Say<'a> {
        self.say("before", ask)
    }

    fn after_attempt<'a>(&'a self, ask: &'a HookAsk, aftermath: &'a Aftermath) -> Say<'a> {
        self.say(
            match aftermath {
                Aftermath::Answered => "answered",
                Aftermath::Failed(_) => "failed",
            },
            ask,
        )
    }
}

/// A gateway with `openai`, behind it `backup`, and one hook.
async fn start(openai: &Sim, backup: &Sim, retries: u32, hook: &Arc<Scripted>) -> TestGateway {
    let sims = [("openai", openai), ("backup", backup)];
    let hooks = vec![Arc::clone(hook) as Arc<dyn Hook>];
    TestGateway::with_hooks(&with_backup(retries), &sims, hooks).await
}

fn denied() -> HookError {
    HookError::new(403, "not_allowed", "This team may not use this model.")
}

#[tokio::test]
async fn an_answer_in_a_providers_place_reaches_every_kind_of_caller() {
    let (openai, backup) = (untouched().await, untouched().await);
    let hook = Scripted::new("before openai", |ask| {
        assert_eq!(
            (ask.route.as_str(), ask.requested.as_str()),
            ("chat", "chat")
        );
        assert!(ask.body().starts_with(b"{"));
        HookDecision::words("from the hook").into()
    });
    let gateway = start(&openai, &backup, 0, &hook).await;
    for body in [ask("chat"), ask_stream("chat")] {
        for answer in [
            gateway.chat(body.clone()).await,
            gateway.messages(body).await,
        ] {
            assert_eq!(
                (answer.status, answer.said().as_str()),
                (200, "from the hook")
            );
            assert_eq!(answer.header("x-backstop-hook"), "scripted");
            assert_eq!(answer.header("x-backstop-attempts"), "0");
            assert_eq!(answer.header("x-backstop-provider"), "", "none served it");
            let record = gateway.record(answer.id()).await;
            assert_eq!((record.terminal, record.status), ("success", Some(200)));
            assert_eq!(record.served, None);
            let reason = record.rows[0].fail_reason.as_deref();
            assert_eq!(
                (record.rows.len(), reason),
                (1, Some("hook_answered:scripted"))
            );
        }
    }
    let stream = gateway.chat(ask_stream("chat")).await;
    assert!(stream.text().ends_with("data: [DONE]\n\n"));
    let whole = gateway.chat(ask("chat")).await.json();
    assert_eq!(whole["model"], "chat");
    assert_eq!(whole["extra_fields"]["hook"], "scripted");
    let metrics = gateway.get("/metrics").await;
    assert!(metrics.text().contains("outcome=\"success_by_hook\""));
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_stop_before_anything_is_sent_is_the_callers_answer() {
    let (openai, backup) = (untouched().await, untouched().await);
    let hook = Scripted::new("before openai", |_| HookDecision::halt(denied()).into());
    let gateway = start(&openai, &backup, 0, &hook).await;
    for answer in [
        gateway.chat(ask("chat")).await,
        gateway.chat(ask_stream("chat")).await,
        gateway.messages(ask("chat")).await,
    ] {
        assert_eq!(answer.status, 403);
        assert_eq!(answer.code(), "not_allowed");
        let message = &answer.json()["error"]["message"];
        assert_eq!(message, "This team may not use this model.");
        assert_eq!(answer.header("x-should-retry"), "false");
        assert_eq!(answer.header("x-backstop-attempts"), "0");
        assert_eq!(gateway.record(answer.id()).await.terminal, "policy_stop");
    }
    let said = "Hook scripted stopped openai/gpt-4o (policy_stop HTTP 403)";
    assert!(gateway.log().contains(said));
    assert!(
        !gateway.log().contains("This team"),
        "words are the caller's"
    );
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_stop_on_a_fallback_wins_over_the_primarys_error() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable))).await;
    let backup = untouched().await;
    let hook = Scripted::new("before backup", |_| HookDecision::halt(denied()).into());
    let gateway = start(&openai, &backup, 0, &hook).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "not_allowed")
    );
    let halted = "Fallback backup/gpt-4o failed (policy_stop HTTP 403); halting further fallbacks";
    assert!(gateway.log().contains(halted));
    assert_eq!(
        column(&answer.trail(), "fail_reason")[1],
        "hook_stopped:scripted"
    );
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_channel_that_is_stopped_leaves_the_next_one() {
    let openai = untouched().await;
    let backup = provider(Script::new().step(Step::ok_text("from backup"))).await;
    let hook = Scripted::new("before openai", |_| HookDecision::not_here(denied()).into());
    let gateway = start(&openai, &backup, 0, &hook).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.said(), "from backup");
    assert_eq!(answer.header("x-backstop-action"), "fallback");
    assert_eq!(answer.header("x-backstop-attempts"), "1");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn each_channel_is_asked_about_once_whatever_its_retries() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).repeat(3))).await;
    let backup = provider(Script::new().step(Step::ok_text("from backup"))).await;
    let hook = Scripted::new("failed openai", |ask| {
        assert_eq!((ask.sends, ask.trail.len()), (3, 3));
        HookDecision::Pass.into()
    });
    let gateway = start(&openai, &backup, 2, &hook).await;
    assert_eq!(gateway.chat(ask("chat")).await.said(), "from backup");
    assert_eq!(
        hook.asked(),
        [
            "before openai",
            "failed openai",
            "before backup",
            "answered backup"
        ]
    );
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_failure_may_be_made_good_by_a_hook() {
    let openai = provider(Script::new().step(Step::fault(Fault::Unavailable).repeat(2))).await;
    let backup = untouched().await;
    let hook = Scripted::new("failed openai", |_| {
        HookDecision::words("yesterday's answer").into()
    });
    let gateway = start(&openai, &backup, 0, &hook).await;
    for body in [ask("chat"), ask_stream("chat")] {
        let answer = gateway.chat(body).await;
        assert_eq!(
            (answer.status, answer.said().as_str()),
            (200, "yesterday's answer")
        );
        assert_eq!(answer.header("x-backstop-attempts"), "1");
    }
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_whole_answer_may_be_refused_and_a_stream_that_flows_may_not() {
    let openai = provider(Script::new().step(Step::ok_text("forbidden words").repeat(2))).await;
    let backup = provider(Script::new().step(Step::ok_text("other words"))).await;
    let hook = Scripted::new("answered openai", |ask| {
        let answer = ask.answer().expect("a whole answer");
        assert!(String::from_utf8_lossy(answer).contains("forbidden words"));
        HookDecision::not_here(HookError::new(422, "refused", "Not this answer.")).into()
    });
    let gateway = start(&openai, &backup, 0, &hook).await;
    let answer = gateway.chat(ask("chat")).await;
    assert_eq!(answer.said(), "other words");
    assert!(!answer.text().contains("forbidden"));
    let stream = gateway.chat(ask_stream("chat")).await;
    assert_eq!(stream.said(), "forbidden words");
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn a_hook_that_never_ends_ends_with_the_request() {
    struct Dropped(&'static Mutex<u32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().expect("no panic") += 1;
        }
    }
    static ENDED: Mutex<u32> = Mutex::new(0);
    let ended = || *ENDED.lock().expect("no panic");
    let (openai, backup) = (untouched().await, untouched().await);
    let hook = Scripted::new("before openai", |_| {
        Say::later(async {
            let _ended = Dropped(&ENDED);
            pending().await
        })
    });
    let gateway = start(&openai, &backup, 0, &hook).await;
    let call = gateway.post("/v1/chat/completions", ask("chat").to_string());
    let late = call
        .clone()
        .header("x-backstop-deadline-ms", "50")
        .send()
        .await;
    assert_eq!(
        (late.status, late.code().as_str()),
        (504, "request_timed_out")
    );
    assert_eq!(ended(), 1);
    // A caller who leaves takes the hook along.
    let peer = call.start().await;
    until("the hook to be asked", || {
        (hook.asked().len() == 2).then_some(())
    })
    .await;
    drop(peer);
    until("the hook's end", || (ended() == 2).then_some(())).await;
    until("the record", || (gateway.journeys() == 2).then_some(())).await;
    as_scripted(&openai);
    as_scripted(&backup);
}

#[tokio::test]
async fn the_first_hook_with_something_to_say_decides() {
    let (openai, backup) = (untouched().await, untouched().await);
    let passes = Scripted::new("nowhere", |_| HookDecision::Pass.into());
    let later = Scripted::new("before openai", |_| {
        Say::later(async {
            tokio::task::yield_now().await;
            HookDecision::words("the second")
        })
    });
    let never = Scripted::new("before openai", |_| HookDecision::halt(denied()).into());
    let sims = [("openai", &openai), ("backup", &backup)];
    let hooks: Vec<Arc<dyn Hook>> = vec![passes.clone(), later, never.clone()];
    let gateway = TestGateway::with_hooks(&with_backup(0), &sims, hooks).await;
    assert_eq!(gateway.chat(ask("chat")).await.said(), "the second");
    assert_eq!((passes.asked().len(), never.asked().len()), (1, 0));
}
