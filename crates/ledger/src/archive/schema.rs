//! The tables, and how a file of an older build becomes one of this build.

use rusqlite::Connection;

use crate::Error;

/// Each step makes the next version of the schema out of the one before; the first makes it out of
/// nothing. A step that was released is never changed.
const STEPS: [&str; 1] = [include_str!("schema/1.sql")];

/// The version that this build reads and writes.
pub(crate) const VERSION: usize = STEPS.len();

/// Brings a file up to [`VERSION`].
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let found = version(connection)?;
    if found > VERSION {
        return Err(Error::NewerSchema {
            found,
            known: VERSION,
        });
    }
    if found == 0 {
        // Only a file without tables takes this.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    for (from, step) in STEPS.iter().enumerate().skip(found) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", i64::try_from(from + 1).unwrap_or(0))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The version of a file's schema; 0 when it is empty.
pub(crate) fn version(connection: &Connection) -> Result<usize, Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(found).unwrap_or(usize::MAX))
}
