"""All tables that have a script, by name, in the order in which they are run."""

from reproduce import (
    bases,
    cross_domain,
    digiface,
    hier,
    indicator_ablation,
    margin_ablation,
    sop,
    table2,
    table5,
)

MODULES = (
    table2,
    indicator_ablation,
    margin_ablation,
    bases,
    table5,
    sop,
    hier,
    digiface,
    cross_domain,
)

TABLES = {module.TABLE.name: module.TABLE for module in MODULES}
