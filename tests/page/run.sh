#!/usr/bin/env bash
# The page's tests: the committed bundle is what the sources build, and the page works in Debian's chromium.
# `packed`: the packed engine is what build/wasm has; `answers`: it gives the program's, under Node.
# usage: run.sh bundle|benches|packed|answers|engine|engine_whole PROGRAM
set -euo pipefail
cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../web"
skip() { echo "skipped: $*"; exit 77; }
command -v node >/dev/null || skip "Node is not installed (Debian package nodejs)"
if [[ $1 == answers ]]; then  # needs no packages of npm
  [[ -e dist/engine/engine.wasm.gz ]] || skip "the engine is not packed (docs/wasm.md)"
  QKV_BIN=$2 exec node --test engine/answers.test.mjs engine/worker.test.mjs
fi
command -v npm >/dev/null || skip "npm is not installed (Debian package npm)"
mkdir -p ../build
stamp=node_modules/.installed
(
  flock 9
  if [[ ! -e $stamp || package-lock.json -nt $stamp ]]; then
    npm ci --no-audit --no-fund --loglevel=error >&2 || exit 1
    touch "$stamp"
  fi
) 9>../build/.npm.lock || skip "the npm registry cannot be reached"
case $1 in
  packed) node engine.mjs --check ;;
  bundle) npx tsc --noEmit && node build.mjs --check ;;
  benches)
    export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)} QKV_BIN=$2
    [[ -n $CHROMIUM ]] || skip "chromium is not installed"
    node --test tests/
    ;;
  engine|engine_whole)
    [[ -e dist/engine/engine.wasm.gz ]] || skip "the engine is not packed (docs/wasm.md)"
    export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)} QKV_BIN=$2
    [[ -n $CHROMIUM ]] || skip "chromium is not installed"
    if [[ $1 == engine_whole ]]; then QKV_SLOW=1 node --test --test-concurrency=1 engine/training.test.mjs
    else node --test --test-concurrency=1 engine/{page,bad,site,training}.test.mjs; fi
    ;;
esac
