//! Live breakers, holds, budgets by id with the guards that settle them.
