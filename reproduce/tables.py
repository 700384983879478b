"""All tables that have a script, by name."""

from reproduce import table2

TABLES = {module.TABLE.name: module.TABLE for module in (table2,)}
