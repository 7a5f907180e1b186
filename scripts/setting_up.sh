# What the scripts that set up environments share. They source it.

# fits PYTHON LOWEST HIGHEST: whether this is a Python 3.LOWEST to 3.HIGHEST that can make virtual environments.
fits() {
    "$1" - "$2" "$3" 2>/dev/null <<'PYTHON'
import ensurepip, sys, venv

sys.exit(not (sys.version_info[0] == 3 and int(sys.argv[1]) <= sys.version_info[1] <= int(sys.argv[2])))
PYTHON
}

# a_python LOWEST HIGHEST: prints a Python that fits. That is PYTHON where the user names one, else python3, else the newest on the
# PATH or under pyenv; a line says which it is where it is another one. Status 3, and a line on what to do, where none fits.
a_python() {
    if [ -n "${PYTHON:-}" ]; then
        if fits "$PYTHON" "$1" "$2"; then
            echo "$PYTHON"
            return
        fi
        echo "$0: PYTHON=$PYTHON is no Python 3.$1 to 3.$2 with venv and ensurepip; name another one" >&2
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
                echo "$0: takes $other, as python3 is no Python 3.$1 to 3.$2 with venv and ensurepip" >&2
                echo "$other"
                return
            fi
        done
        minor=$((minor - 1))
    done
    echo "$0: needs Python 3.$1 to 3.$2 with venv; install one (apt install python3-venv, brew install python, or pyenv install 3.$2)," \
        "or name it: PYTHON=... $0" >&2
    return 3
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
    made_from=$( (echo "$scripts" && cat "$@") | cksum)
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

# help_if_asked FIRST: where the first word asks for help, prints the comment at the head of the script, and ends it.
help_if_asked() {
    case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"
        exit 0
        ;;
    esac
}
