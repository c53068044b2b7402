#!/bin/sh
# Generates quartet_plugin/_proto from the wire contract. It needs protoc 3.21, whose code runs with every protobuf that
# the package allows: generated code works with newer runtimes, never with older ones.
set -eu
cd "$(dirname "$0")"
out=quartet_plugin/_proto
protoc=${PROTOC:-protoc}
case $("$protoc" --version) in
*' 3.21.'*) ;;
*) echo "generate.sh: need protoc 3.21, have $("$protoc" --version)" >&2 && exit 1 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$protoc" -I ../proto --python_out="$work" --pyi_out="$work" \
    quartet/stage/v1/base.proto quartet/stage/v1/stages.proto quartet/stage/v1/view.proto
for file in "$work"/quartet/stage/v1/*; do
    # The package is private to quartet_plugin: it is found beside the importing module.
    sed 's/^from quartet\.stage\.v1 import /from . import /' "$file" >"$out/$(basename "$file")"
done
