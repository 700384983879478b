"""What several packages need and no library gives: errors, atomic writes, geometry."""
