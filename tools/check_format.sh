#!/usr/bin/env bash
# check_format.sh [FOLDER]: fails unless every tracked .h and .cpp file, or every one in FOLDER, is as clang-format 14
# writes it and has no line over 120 columns. Strings count too, which clang-format leaves alone: they are wrapped by
# hand. A wide character, such as a Chinese one, takes two columns.
set -euo pipefail
unset CDPATH
cd "${1:-$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..}"

for format in clang-format-14 clang-format ''; do
  [[ -n $format ]] || { echo "clang-format 14 is missing: ./test installs it, or the package clang-format"; exit 1; }
  [[ $("$format" --version 2>/dev/null) == *"version 14."* ]] && break
done

list() {
  # A tracked file may have been removed.
  if (( $# == 0 )) && git rev-parse 2>/dev/null; then git ls-files '*.h' '*.cpp' | xargs -d '\n' ls -d 2>/dev/null; return 0; fi
  find . -type f \( -name '*.h' -o -name '*.cpp' \) | sed 's|^\./||'
}
mapfile -t files < <(list "$@" | LC_ALL=C sort | grep -vE '^(build|tests/format/faulty)/')
(( ${#files[@]} )) || { echo "no sources in $PWD"; exit 1; }

failed=0
printed=$(printf '%s\0' "${files[@]}" | xargs -0 -n 40 -P "$(nproc 2>/dev/null || echo 2)" \
  "$format" --dry-run -Werror --style=file 2>&1) || failed=1
sed -nE 's/^([^: ]+:[0-9]+):[0-9]+: error: code should be clang-formatted.*/\1: not as clang-format writes it/p' \
  <<<"$printed" | LC_ALL=C sort -t: -k1,1 -k2,2n -u
if (( failed )) && ! grep -q 'code should be clang-formatted' <<<"$printed"; then printf '%s\n' "$printed"; fi

perl -CSD - "${files[@]}" <<'PERL' || failed=1
use strict;
use warnings;
my $found = 0;
my @ranges = qw(1100-115F 2E80-303E 3041-A4CF AC00-D7A3 F900-FAFF FE30-FE6F FF01-FF60 FFE0-FFE6);
push @ranges, qw(1F300-1FAFF 20000-3FFFD);
my $wide = '[' . join('', map { s/(\w+)/\\x{$1}/gr } @ranges) . ']';
while (<>) {
  chomp;
  my $columns = length() + (() = /$wide/g);
  next if $columns <= 120;
  print "$ARGV:$.: $columns columns, at most 120\n";
  $found = 1;
} continue {
  close ARGV if eof;
}
exit $found;
PERL
exit "$failed"
