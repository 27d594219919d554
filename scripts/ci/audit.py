"""Known vulnerabilities of the packages of this environment: exit 1 if there are any.

If the database cannot be reached, a message says so, and the check passes: a machine without a network cannot know.
"""

from __future__ import annotations

import json
import subprocess
import sys

SECONDS = 120


def report() -> tuple[dict | None, str]:
    """Return what pip-audit found, or None and the reason."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--format",
        "json",
        "--progress-spinner",
        "off",
        "--skip-editable",
    ]
    try:
        done = subprocess.run(
            [*command, "--timeout", "10"],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {SECONDS} s"
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return None, lines[-1] if lines else f"pip-audit ended with {done.returncode}"


def verdict(found: dict | None, why: str) -> tuple[int, str]:
    """Return exit code and message for a report."""
    if found is None:
        return 0, f"NOT CHECKED: the database of vulnerabilities could not be reached ({why[:200]})"
    packages = found["dependencies"]
    asked = [package for package in packages if "skip_reason" not in package]
    if not asked:
        return (
            0,
            f"NOT CHECKED: the database of vulnerabilities knows none of {len(packages)} packages",
        )
    known = [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for package in asked
        for flaw in package["vulns"]
    ]
    words = [
        *known,
        f"{len(known)} known vulnerabilities in {len(asked)} of {len(packages)} packages that could be checked",
    ]
    return int(bool(known)), "\n".join(words)


def main() -> int:
    code, words = verdict(*report())
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main())
