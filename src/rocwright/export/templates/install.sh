#!/bin/sh
# Makes the environment of the image: every wheel of the stack, and of the choice those that are required.
set -eu
@PYTHON@ -m venv --system-site-packages --without-pip @PLACE@
python=@PLACE@/bin/python
"$python" -m pip --version > /dev/null 2>&1 || "$python" -m ensurepip > /dev/null
PIP_NO_INDEX=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_FIND_LINKS=@CHOICE@
export PIP_NO_INDEX PIP_NO_CACHE_DIR PIP_DISABLE_PIP_VERSION_CHECK PIP_FIND_LINKS
mkdir -p @CHOICE@
"$python" -m pip install --quiet --no-deps --ignore-installed --no-warn-script-location @WHEELS@/*.whl
# a requirement that nothing brings ends this, by its name
"$python" -m pip install --quiet --no-warn-script-location @WHEELS@/*.whl @WANTED@
[ -x @PROGRAM@ ] || { echo "install.sh: no wheel of the stack brings @PROGRAM@" >&2; exit 4; }
rm @PLACE@/install.sh
