//! The table of surfaces and dialects: no cell fails, and the page says what is so.

use backstop_tests::compat::{Outcome, markdown, page, play};

#[tokio::test]
async fn every_surface_before_every_dialect() {
    let cells = play().await;
    let failed = cells.iter().filter_map(|cell| match &cell.outcome {
        Outcome::Fail(fault) => Some(format!("{cell:?}\n  {fault}")),
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    assert!(
        failed.is_empty(),
        "{} fail:\n{}",
        failed.len(),
        failed.join("\n")
    );
    let kept = std::fs::read_to_string(page()).unwrap_or_default();
    assert_eq!(
        kept,
        markdown(&cells),
        "`cargo xtask compat` writes the page"
    );
}
