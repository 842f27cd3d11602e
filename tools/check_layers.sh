#!/usr/bin/env bash
# check_layers.sh [FOLDER]: who may include whom in src/qkv. Prints one line per violation and fails if there is one.
# The table is also in CONTRIBUTING.md; change both.
set -euo pipefail
root=${1:-$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../src/qkv}
cd "$root"
mapfile -t files < <(find . -type f \( -name '*.h' -o -name '*.cpp' \) | sed 's|^\./||' | LC_ALL=C sort)
(( ${#files[@]} )) || { echo "no sources in $root"; exit 1; }

# Headers with QKV_API are installed (core/api.h), and may include nothing that is not.
public=$(grep -l 'QKV_API' -- "${files[@]}" | grep '\.h$' | tr '\n' ' ' || true)
awk -v public="$public" '
BEGIN {
  may["core"] = "core"
  may["kernels"] = "core kernels"
  may["ranks"] = "core ranks"
  may["tensor"] = "core kernels tensor"
  may["ops"] = "core kernels tensor ops"
  may["nn"] = "core tensor ops io nn"
  may["attention"] = "core tensor ops nn attention"
  may["io"] = "core tensor io"
  may["plot"] = "core tensor io plot"
  may["data"] = "core tensor io data"
  may["eval"] = "core eval"
  may["train"] = "core kernels tensor ranks ops nn io train"
  may["decode"] = "core kernels tensor decode"
  may["regression"] = "core kernels tensor regression"
  may["models"] = "core kernels tensor ops nn attention models"
  may["run"] = "core tensor ranks ops nn io train run"
  may["tasks"] = "core tensor ranks ops attention io data eval train decode models run tasks"
  may["report"] = "core tensor ranks ops attention io plot data eval train decode models regression run tasks report"
  may["labs"] = "core tensor ops nn attention plot data eval train decode regression models tasks report labs"
  may["serve"] = "core kernels tensor ranks ops nn attention io plot data eval train decode regression models run tasks report serve"
  may["wasm"] = "*"
  may["cli"] = "*"
  may["qkv.h"] = "core tensor ranks ops nn attention io plot data eval train decode regression models run tasks report"

  # Libraries that only one file may include.
  only["^(oneapi/)?tbb/"] = "core/parallel.cpp"
  only["^CLI/"] = "cli/main.cpp"
  only["^microhttpd"] = "serve/http.cpp"
  only["^mpi"] = "ranks/mpi.cpp"

  printing = "std::(cout|cerr|clog|print)|fmt::print"
  printing = printing "|(^|[^A-Za-z0-9_])(v?f?printf|puts|putchar|perror)[ ]*\\("
  printing = printing "|(^|[^A-Za-z0-9_])(stdout|stderr)([^A-Za-z0-9_]|$)"
}
function violation(text) { print FILENAME ":" FNR ": " text; bad = 1 }
function is_public(name) { return index(" " public " ", " " name " ") > 0 }
function allowed(layer, other) { return may[layer] == "*" || index(" " may[layer] " ", " " other " ") > 0 }

FNR == 1 {
  layer = FILENAME; sub("/.*", "", layer)
  header = FILENAME ~ /\.h$/
  inl = FILENAME ~ /-inl\.h$/
  if (!(layer in may)) violation("\"" layer "\" is not a layer")
  installed = header && is_public(FILENAME)
  if (installed && layer ~ /^(kernels|labs|serve|wasm|cli)$/) violation(layer " is not part of the public interface: QKV_API")
}

/^[ \t]*#[ \t]*include/ {
  name = $0; sub(/^[^<"]*[<"]/, "", name); sub(/[>"].*/, "", name)
  if ($0 ~ /"/) {
    if (name !~ /^qkv\/[a-z]+\//) violation("our own headers are included as \"qkv/LAYER/name.h\", not \"" name "\"")
    else if (layer in may) {
      split(name, part, "/")
      if (!allowed(layer, part[2])) violation(layer " may not include " part[2] ": " name)
      else if (installed && !is_public(substr(name, 5))) violation("a public header may not include an internal one: " name)
    }
    next
  }
  for (library in only)
    if (name ~ library && FILENAME != only[library])
      violation("only " only[library] " may include " name)
  # Standard headers have neither a dot nor a slash. Headers of serve, which are never installed, pass JSON around.
  if (layer == "serve" && name ~ /^nlohmann\//) next
  if (header && name ~ /[.\/]/ && !(inl && name ~ /^hwy\//)) violation("a qkv header may include only standard headers: " name)
  next
}

layer != "cli" && layer != "labs" {
  line = $0
  gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
  sub(/\/\/.*/, "", line)
  if (line ~ printing) violation("library code never prints: " $0)
}
END { exit bad }
' "${files[@]}"
