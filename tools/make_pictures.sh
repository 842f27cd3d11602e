#!/usr/bin/env bash
# make_pictures.sh [RUN]: makes the pictures of README.md and README.zh-CN.md anew, in docs/pictures. RUN is the folder of
# `qkv train --preset transformer`; without one, that model is trained first. QKV names the program (default: ./qkv).
# Chromium and ImageMagick (Debian: chromium, imagemagick) cut the slice out of the report.
set -euo pipefail
unset CDPATH
run=${1:+$(realpath -- "$1")}
cd "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
qkv=$(realpath -- "${QKV:-./qkv}")
pictures=$PWD/docs/pictures
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C.UTF-8
cd "$folder"
[[ -n $run ]] || { "$qkv" train --preset transformer; run=runs/transformer; }

for lang in en zh; do
  suffix=; [[ $lang == en ]] || suffix=.$lang

  # Kernel regression: the fit, and the weight of every training point (columns) in every prediction (rows).
  "$qkv" data nadaraya-watson -o nw.csv
  "$qkv" regress --lang $lang --data nw.csv --x x --y y --bandwidth 0.5 --grid 50 --band -o fit.csv \
    --plot "$pictures/fit$suffix.svg" --weights-plot "$pictures/weights$suffix.png"

  # Translation: the head that aligns best, as `qkv align` with gold alignments says.
  "$qkv" inspect --lang $lang --model "$run" --kind cross --layer 2 --head 1 \
    'the intelligent children do not like the red house .' -o "$pictures/translation$suffix.svg"

  # The report: the first subsection of section 10.2, cut out by a style sheet.
  "$qkv" tour 10.2 --lang $lang --out tour
  sed 's|</head>|<style>header, nav, h3:nth-of-type(2), h3:nth-of-type(2) ~ * { display: none }</style></head>|' \
    tour/index.html >tour/slice.html
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1.5 \
    --window-size=860,1100 --screenshot=slice.png "file://$folder/tour/slice.html" 2>log || { cat log; exit 1; }
  convert slice.png -trim -bordercolor white -border 36 -strip +dither -colors 64 -white-threshold 99% \
    "PNG8:$pictures/tour$suffix.png"
done
ls -l "$pictures"
