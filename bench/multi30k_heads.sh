#!/usr/bin/env bash
# multi30k_heads.sh QKV DATA [OUT] [EPOCHS] [TUNE_EPOCHS] [settings for qkv train, such as --limit 500]: half the heads of
# a Multi30k model removed. Trains, ranks by four criteria, prunes, tunes, measures; DATA holds multi30k/. A step whose
# result is in OUT is skipped. 4 epochs take about 40 minutes of processor time; the preset has 12.
set -euo pipefail
(( $# >= 2 )) || { sed -n '2,4s/^# //p' "$0"; exit 2; }
HERE=$(dirname "$(realpath "$0")") QKV=$(realpath "$1") OUT=$(realpath -m "${3:-heads}") EPOCHS=${4:-12} TUNE=${5:-1}
cd "$2"  # the preset's paths are relative
shift $(( $# < 5 ? $# : 5 ))
mkdir -p "$OUT"
paste multi30k/val.en multi30k/val.fr >"$OUT/val.tsv"
paste multi30k/test_2016_flickr.en multi30k/test_2016_flickr.fr >"$OUT/test.tsv"
say() { printf '\n== %s  (%s)\n' "$*" "$(date -u +%T)"; }

say "1. train, $EPOCHS epochs (the preset has 12)"
[[ -e $OUT/whole/model.safetensors ]] || "$QKV" train --preset multi30k-en-fr --epochs "$EPOCHS" "$@" -o "$OUT/whole" | tail -n 20

say "2. four rankings, 200 validation pairs, and BLEU without each head"
[[ -s $OUT/compare.txt ]] || "$QKV" prune --model "$OUT/whole" --compare --bleu --sentences 200 | tee "$OUT/compare.txt"

say "3. quality against heads kept, all validation pairs, by gate and by entropy"
for by in gate entropy; do
  [[ -s $OUT/curve-$by.txt ]] || "$QKV" prune --model "$OUT/whole" --by $by --curve --sentences 1014 --data "$OUT/val.tsv" --plot "$OUT/curve-$by.svg" | tee "$OUT/curve-$by.txt"
done

say "4. remove half by each criterion (importance on 200 validation pairs; loss and BLEU on them, before any tuning)"
for by in gate ablation confidence entropy; do
  [[ -s $OUT/half-$by.txt ]] && continue
  rm -rf "$OUT/half-$by"
  "$QKV" prune --model "$OUT/whole" --by $by --keep 0.5 -o "$OUT/half-$by" | tee "$OUT/half-$by.txt"
done

say "5. fine-tune the model pruned by gate, and the whole one for as long (the control)"
for m in half-gate whole; do
  [[ -e $OUT/$m-tuned/model.safetensors ]] || "$QKV" train --init "$OUT/$m" --epochs "$TUNE" --rate 0.0004 --warmup 50 -o "$OUT/$m-tuned" | tail -n 4
done

say "6. BLEU on test_2016_flickr, beam 5, with 95 % intervals and a paired test against the whole model tuned as long"
for m in whole half-gate whole-tuned half-gate-tuned; do
  "$QKV" translate -q --model "$OUT/$m" multi30k/test_2016_flickr.en >"$OUT/$m.fr"
done
"$QKV" score --ref multi30k/test_2016_flickr.fr --lowercase --bootstrap "$OUT"/whole.fr "$OUT"/half-gate.fr "$OUT"/whole-tuned.fr "$OUT"/half-gate-tuned.fr | tee "$OUT/bleu.txt"
"$QKV" score --ref multi30k/test_2016_flickr.fr --lowercase --test bootstrap "$OUT"/whole-tuned.fr "$OUT"/half-gate-tuned.fr | tee "$OUT/paired.txt"

say "7. decoding time: processor seconds on one thread, greedy and beam 5, interleaved, least of 5; and peak memory"
# Both models write 20 tokens for every line: else the times would compare how much each of them writes.
for m in whole half-gate; do
  rm -rf "$OUT/$m-20" && python3 "$HERE/never_ends.py" "$OUT/$m" "$OUT/$m-20"
done
: >"$OUT/times.txt"
for i in 1 2 3 4 5; do
  for beam in 1 5; do
    for m in whole half-gate; do
      /usr/bin/time -f "$beam $m %U %M" -a -o "$OUT/times.txt" "$QKV" translate -q --model "$OUT/$m-20" --threads 1 --beam $beam --max-length 20 multi30k/test_2016_flickr.en >/dev/null
    done
  done
done
awk '{k=$1" "$2; if (!(k in t) || $3<t[k]) t[k]=$3; if (!(k in m) || $4<m[k]) m[k]=$4}
  END {for (b=1; b<=5; b+=4) {w=b" whole"; h=b" half-gate"
    printf "beam %d: whole %.2f s, half %.2f s, %.1f %% less; peak memory %.1f -> %.1f MB\n", b, t[w], t[h], 100*(1-t[h]/t[w]), m[w]/1024, m[h]/1024}}' "$OUT/times.txt" | tee "$OUT/times-summary.txt"
if command -v valgrind >/dev/null; then
  head -n 20 multi30k/test_2016_flickr.en >"$OUT/20.en"
  for m in whole half-gate; do
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$QKV" translate -q --model "$OUT/$m-20" --threads 1 --beam 5 --max-length 20 "$OUT/20.en" 2>&1 >/dev/null | grep -a 'Collected' | sed "s/^.*Collected/$m, 20 lines, instructions (start-up included)/" | tee -a "$OUT/times-summary.txt"
  done
fi
ls -l "$OUT"/whole/model.safetensors "$OUT"/half-gate/model.safetensors
say done
