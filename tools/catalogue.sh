#!/usr/bin/env bash
# The Chinese catalogue, po/zh_CN.po, against the sentences in the code.
set -euo pipefail
unset CDPATH
export LC_ALL=C.UTF-8  # elsewhere grep does not know Chinese characters
root=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")

usage() {
  cat <<'TEXT'
usage: tools/catalogue.sh check [FOLDER] | update
  check    no sentence without a translation, none unused, none fuzzy, no Chinese in the code
  update   adds the new sentences of the code to po/zh_CN.po, untranslated, and removes those that are gone
TEXT
}

cd "${2:-$root}"
for tool in xgettext msgmerge msgattrib msgfmt; do
  command -v "$tool" >/dev/null || { echo "catalogue: error: $tool is missing; Debian has it in the package gettext" >&2; exit 1; }
done
po=po/zh_CN.po
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# tr("..."), refuse("...") and require(condition, "...") hold sentences. They are not printf formats, whatever percent
# signs they have.
sentences() {
  find src -name '*.h' -o -name '*.cpp' | LC_ALL=C sort |
    xgettext -f - --language=C++ --from-code=UTF-8 --add-location=file --no-wrap -o "$scratch/qkv.pot" \
      --keyword --keyword=tr:1 --keyword=refuse:1 --keyword=require:2 \
      --flag=tr:1:no-c-format --flag=refuse:1:no-c-format --flag=require:2:no-c-format
  sed -i -e '/^#, no-c-format$/d' -e '/^"POT-Creation-Date/d' "$scratch/qkv.pot"
}

# The msgid of every entry, one per line.
ids() { msgattrib --no-wrap --no-location "$@" | sed -n 's/^msgid "\(..*\)"$/\1/p' | LC_ALL=C sort; }

bad=0
complain() {  # what, list of lines
  [[ -n $2 ]] || return 0
  bad=1
  sed "s|^|catalogue: $1: |" <<<"$2"
}

check() {
  complain "not in $po; tools/catalogue.sh update adds it" "$(LC_ALL=C comm -23 <(ids "$scratch/qkv.pot") <(ids "$po"))"
  complain "in $po, but not in the code" "$(LC_ALL=C comm -13 <(ids "$scratch/qkv.pot") <(ids "$po"))"
  complain "without a translation" "$(ids --untranslated "$po")"
  complain "fuzzy" "$(ids --only-fuzzy "$po")"
  msgfmt --check -o /dev/null "$po" 2>&1 || bad=1
  complain "Chinese in the code; English is said there, and $po has the Chinese" \
    "$(grep -rnP '[\x{4e00}-\x{9fff}]' src --include='*.h' --include='*.cpp' |
       grep -vF "\"中文\""  | cut -c1-160)"
  exit "$bad"
}

update() {
  msgmerge --quiet --no-fuzzy-matching --no-wrap --add-location=file -o "$scratch/new.po" "$po" "$scratch/qkv.pot"
  msgattrib --no-obsolete --no-wrap -o "$scratch/clean.po" "$scratch/new.po"
  cp "$scratch/clean.po" "$po"
  msgfmt --statistics -o /dev/null "$po"
}

case ${1:-} in
  check) sentences; check ;;
  update) sentences; update ;;
  -h|--help) usage ;;
  *) usage >&2; exit 2 ;;
esac
