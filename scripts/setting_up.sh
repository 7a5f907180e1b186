# Functions for the scripts that set up environments, which source this file.

# fits PYTHON LOWEST HIGHEST: tests whether PYTHON is Python 3.LOWEST to 3.HIGHEST and can create virtual environments.
fits() {
    "$1" - "$2" "$3" 2>/dev/null <<'PYTHON'
import ensurepip, sys, venv

sys.exit(not (sys.version_info[0] == 3 and int(sys.argv[1]) <= sys.version_info[1] <= int(sys.argv[2])))
PYTHON
}

# a_python LOWEST HIGHEST: prints a suitable interpreter: $PYTHON if set, otherwise python3, otherwise the newest one on the PATH
# or under pyenv, which is reported on standard error. Status 3, with a message, if there is none.
a_python() {
    if [ -n "${PYTHON:-}" ]; then
        if fits "$PYTHON" "$1" "$2"; then
            echo "$PYTHON"
            return
        fi
        echo "$0: PYTHON=$PYTHON is not Python 3.$1 to 3.$2 with venv and ensurepip; specify another one" >&2
        return 3
    fi
    if fits python3 "$1" "$2"; then
        echo python3
        return
    fi
    minor=$2
    while [ "$minor" -ge "$1" ]; do
        for other in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
            if fits "$other" "$1" "$2"; then
                echo "$0: using $other, because python3 is not Python 3.$1 to 3.$2 with venv and ensurepip" >&2
                echo "$other"
                return
            fi
        done
        minor=$((minor - 1))
    done
    echo "$0: needs Python 3.$1 to 3.$2 with venv; install one (apt install python3-venv, brew install python, or pyenv install 3.$2)," \
        "or specify its path: PYTHON=... $0" >&2
    return 3
}

# environment FOLDER PYTHON: creates a virtual environment if it does not exist.
environment() {
    [ -x "$1/bin/python" ] || "$2" -m venv "$1"
}

# install FOLDER ARGUMENTS...: runs pip install in this environment.
install() {
    installs_into=$1
    shift
    "$installs_into/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}

# unless_ready FOLDER FILES...: ends the script if FOLDER is up to date with the content of FILES, and was created for this
# checkout ($scripts is its folder of scripts).
unless_ready() {
    stamp=$1/.mbr-esd-ready
    shift
    made_from=$( (echo "$scripts" && cat "$@") | cksum)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$made_from" ]; then
        echo "$(dirname "$stamp") is ready"
        exit 0
    fi
}

# ready [HOW]: records for `unless_ready` that the folder is complete, and prints HOW to use it.
ready() {
    echo "$made_from" >"$stamp"
    echo "$(dirname "$stamp") is ready${1:+: $1}"
}

# usage GIVEN MOST USAGE: prints USAGE and ends the script unless the number of arguments GIVEN is from 1 to MOST.
usage() {
    if [ "$1" -lt 1 ] || [ "$1" -gt "$2" ]; then
        echo "usage: $0 $3" >&2
        exit 2
    fi
}

# help_if_asked FIRST: if FIRST is -h or --help, prints the comment at the top of the script, and ends it.
help_if_asked() {
    case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"
        exit 0
        ;;
    esac
}
