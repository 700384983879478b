"""One script per paper table, and the shared machinery that trains, records, draws and checks."""
