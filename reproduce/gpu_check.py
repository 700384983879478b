"""What to run before paying for days of a GPU: its tests and a short benchmark, without any data.

    python -m reproduce gpu-check

Under five minutes on a data-centre GPU. Writes one JSON with the results and the versions. Exit
code 0 if the tests passed, 1 if some failed, 2 without a CUDA device.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.gpu_check")

import argparse
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from common.atomic import write_text
from common.errors import UserError, run_cli
from reproduce import gpu_benchmark, machine
from reproduce.code_hash import ROOT
from reproduce.store import RUNS


def main(argv: list[str]) -> int:
    """Runs both and writes the JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.gpu_check", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--output", type=Path, default=RUNS / "gpu_check.json")
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        raise UserError(
            "gpu-check needs a CUDA device and torch sees none: see python -m reproduce doctor"
        )
    device = torch.device("cuda", torch.cuda.current_device())
    benchmarks = {
        "evaluation": lambda: gpu_benchmark.evaluation(device),
        "losses": lambda: gpu_benchmark.loss_steps(device),
        "training": lambda: gpu_benchmark.training_steps(device),
    }
    return check(["-m", "gpu", "tests"], benchmarks, options.output)


def check(tests: list[str], benchmarks: dict[str, Callable[[], Any]], output: Path) -> int:
    """Runs the tests that pytest's arguments choose, then the benchmarks, and writes ``output``.

    A benchmark that fails, for want of memory say, is a line in the output like the others. Returns
    1 if a test or a benchmark failed or no test ran.
    """
    started = time.perf_counter()
    print("tests ...", flush=True)
    report: dict[str, Any] = {"tests": run_tests(tests), "benchmark": {}}
    print(f"  {report['tests']}")
    worked = report["tests"]["passed"] > 0 and report["tests"]["failed"] == 0
    for name, measure in benchmarks.items():
        print(f"{name} ...", flush=True)
        try:
            report["benchmark"][name] = measure()
        except (RuntimeError, UserError) as error:
            worked = False
            report["benchmark"][name] = {"failed": str(error).splitlines()[0]}
        print(f"  {report['benchmark'][name]}", flush=True)
    report |= {"seconds": round(time.perf_counter() - started, 1), "machine": machine.facts()}
    write_text(output, json.dumps(report, indent=1) + "\n")
    print(f"wrote {output} after {report['seconds']} s")
    return 0 if worked else 1


def run_tests(arguments: list[str]) -> dict[str, Any]:
    """Numbers of passed, failed and skipped tests, and the names of those that failed.

    Raises:
        UserError: pytest is not installed, or could not run.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tests.xml")
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={path}", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not path.exists():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
            raise UserError(
                f"the tests did not run ({last[0]}): pip install -r requirements-dev.txt"
            )
        cases = ElementTree.parse(path).getroot().iter("testcase")
        outcomes = [(case, {child.tag for child in case}) for case in cases]
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case, tags in outcomes
        if tags & {"failure", "error"}
    ]
    skipped = sum("skipped" in tags for _, tags in outcomes)
    passed = len(outcomes) - len(failed) - skipped
    return {
        "passed": passed,
        "failed": len(failed),
        "skipped": skipped,
        "names_of_failed": failed,
    }


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
