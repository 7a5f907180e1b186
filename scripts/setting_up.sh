# What the scripts that set up environments share. They source it.

# within PYTHON LOWEST HIGHEST WHY: ends the script, saying WHY, where this Python is older or newer.
within() {
    "$1" - "$2" "$3" <<'PYTHON' || { echo "$0: $4; name one: PYTHON=python$3 $0" >&2 && exit 1; }
import sys

lowest, highest = (tuple(map(int, version.split("."))) for version in sys.argv[1:])
sys.exit(not lowest <= sys.version_info[:2] <= highest)
PYTHON
}

# environment FOLDER PYTHON: makes a virtual environment where there is none.
environment() {
    [ -x "$1/bin/python" ] || "$2" -m venv "$1"
}

# install FOLDER ARGUMENTS...: pip install, in this environment.
install() {
    installs_into=$1
    shift
    "$installs_into/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}

# unless_ready FOLDER FILES...: ends the script where this folder was made from these files, as they are now, and for this
# checkout ($scripts is its folder of scripts).
unless_ready() {
    stamp=$1/.mbr-esd-ready
    shift
    made_from=$( (echo "$scripts" && cat "$@") | sha256sum | cut -d ' ' -f 1)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$made_from" ]; then
        echo "$(dirname "$stamp") is ready"
        exit 0
    fi
}

# ready [HOW]: notes for `unless_ready` that the folder is made, and says HOW to use it.
ready() {
    echo "$made_from" >"$stamp"
    echo "$(dirname "$stamp") is ready${1:+: $1}"
}

# usage GIVEN MOST USAGE: ends the script with its usage unless it was given one word or more, and at most MOST.
usage() {
    if [ "$1" -lt 1 ] || [ "$1" -gt "$2" ]; then
        echo "usage: $0 $3" >&2
        exit 2
    fi
}
