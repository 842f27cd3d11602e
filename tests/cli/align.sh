# qkv align: the error rate of a file of alignments, counted from 0 or 1, and what it refuses.
printf '0-0 1-1 2-2 3-3 4-4\n\n0-1\n' >hyp.align
printf '0-0 1-1 2-2 5-5 3p3 6?6\n\n0-0\n' >gold.align
printf '1-1 2-2 3-3 6-6 4p4 7?7\n\n1-1\n' >gold1.align
note0='an index is 0, so words are counted from 0'
expect 0 '' align --alignment hyp.align --gold gold.align --base 0
expect_out 'AER 36.4 %  precision 66.7 %  recall 60.0 %  F 63.2 %  (6 links, gold 5 sure and 2 possible, 3 lines)'
scores=$out
expect 0 '' align --alignment hyp.align --gold gold1.align --base 0 --gold-base 1
expect_out "$scores"
expect 0 "qkv: note: hyp.align: $note0; --base 0 says so explicitly
qkv: note: gold1.align: no index is 0, so words are assumed to be counted from 1; --gold-base sets it" align --alignment hyp.align --gold gold1.align
expect_out "$scores"
expect 0 'qkv：注意：hyp.align：有编号为 0，故从 0 开始计数；可用 --base 0 指明' align --alignment hyp.align --gold gold1.align --gold-base 1 --lang zh
expect 0 '' align --quiet --alignment hyp.align --gold gold.align --json
expect_match '^\{"aer":0\.3636363636[0-9]*,"precision":0\.6666[0-9]*,"recall":0\.6,"f":0\.63157894[0-9]*,"links":6,"sure":5,"possible":2,"in_sure":3,"in_sure_or_possible":4,"lines":3\}$' "$out"
printf '\n\n\n' >none.align
expect 0 '' align --alignment none.align --gold none.align --base 0
expect_out 'AER undefined  precision undefined  recall undefined  F undefined  (0 links, gold 0 sure and 0 possible, 3 lines)'
expect_match '^AER 36\.4 %' "$("$QKV" align --alignment - --gold gold.align --base 0 <hyp.align)"

# Links must be within the sentences.
printf 'a b c d e f g\n\na\n' >source.txt
printf 'A B C D E F G\n\nA B\n' >target.txt
expect 0 '' align --alignment hyp.align --gold gold.align --base 0 --source source.txt --target target.txt
expect 1 'qkv: error: hyp.align: line 3: the link "0-1" (counted from 0) is outside of 1 source and 1 target words' align --alignment hyp.align --gold gold.align --base 0 --source source.txt --target source.txt

# Refusals.
expect 2 'qkv: error: give --alignment FILE to score an alignment, or --model DIR to make one
hint: qkv align --help shows an example' align --gold gold.align
expect 2 'qkv: error: --gold FILE is missing
hint: qkv align --help shows an example' align --alignment hyp.align
expect 2 'qkv: error: --source and --target go together' align --alignment hyp.align --gold gold.align --source source.txt
expect 2 'qkv: error: --base: got "2", expected a whole number from 0 to 1' align --alignment hyp.align --gold gold.align --base 2
expect 1 'qkv: error: hyp.align: line 1: the link "0-0" has index 0 in a file that counts from 1' align --alignment hyp.align --gold gold.align --base 1
head -n 2 gold.align >short.align
expect 1 'qkv: error: hyp.align has 3 lines, but short.align has 2' align --alignment hyp.align --gold short.align --base 0
printf '0-0\n0-0 1:2\n' >bad.align
expect 1 'qkv: error: bad.align: line 2: expected a link like 1-2, 1p2 or 1?2, got "1:2"' align --alignment bad.align --gold gold.align
: >empty.align
expect 1 'qkv: error: empty.align: is empty, expected text' align --alignment hyp.align --gold empty.align --base 0
expect 2 'qkv: error: --pairs, --layer, --head, --shift, --unit, --output and --plot go with --model' align --alignment hyp.align --gold gold.align --layer 1

# With the attention of a Transformer: the best head by gold links, a chosen one, and without gold links the one whose links tell the most.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  (( (a + b + c) % 2 )) || printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
sed 's/.*/0-2 1-1 2-0/' pairs.tsv >pairs.align
run train --data pairs.tsv --tokenizer spaces --min-count 1 --kind transformer --norm pre --hidden 32 --heads 2 --ffn 64 --layers 2 --rate 0.01 \
  --batch-rows 16 --seed 3 --dropout 0 --epochs 60 --quiet -o model
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect 0 '' align --model model --pairs pairs.tsv --gold pairs.align --base 0
expect_match $'^layer  head    AER, shift 0      shift 1\n    1     1 ' "$out"
checks=$((checks + 4))
[[ $(grep -o '\*' <<<"$out" | wc -l) == 1 ]] || mismatch "not one best head in $out"
[[ $(wc -l <<<"$out") == 7 ]] || mismatch "four heads are not four lines in $out"
best=$(sed -n 's/^layer \([12]\), head \([12]\), shift \([01]\): AER .*/\1 \2 \3/p' <<<"$out")
lowest=$(sed -n '2,5s/ [*]//; 2,5p' <<<"$out" | grep -o '[0-9.]* %' | sort -n | head -n 1)
last=$(tail -n 1 <<<"$out")
[[ -n $best && $last == "AER $lowest"* ]] || mismatch "the last line is not the lowest error rate $lowest: $out"
[[ ${lowest%%.*} -lt 40 ]] || mismatch "no head of a model that translates has links: $lowest"
read -r layer head shift <<<"$best"
expect 0 '' align --model model --pairs pairs.tsv --gold pairs.align --base 0 --layer "$layer" --head "$head" --shift "$shift"
expect_out "$last"
sed 's/.*/1-3 2-2 3-1/' pairs.tsv >from_one.align
run align --model model --pairs pairs.tsv --gold from_one.align --base 1 --layer "$layer" --head "$head" --shift "$shift" -o own.align
expect 0 '' align --alignment own.align --gold from_one.align --base 1
expect_out "$last"
expect 0 '' align --model model --pairs pairs.tsv --gold pairs.align --base 0 --json
expect_match "\"by\":\\{\"layer\":$layer,\"head\":$head,\"shift\":$shift,\"aer\":[0-9.e-]+\\},\"heads\":\\[\\{\"layer\":1,\"head\":1,\"shift\":0,\"aer\":" "$out"
run align --model model --pairs pairs.tsv -o own.align
expect_match '^qkv: note: layer [12], head [12], shift [01]: its links tell the most about the words; --layer, --head and --shift choose another$' "$err"
own=$(sed 's/.*layer \([12]\), head \([12]\), shift \([01]\).*/\1 \2 \3/' <<<"$err")
expect 0 '' align --model model --pairs pairs.tsv --layer "${own%% *}" --head "$(cut -d' ' -f2 <<<"$own")" --shift "${own##* }"
expect_out "$(cat own.align)"
checks=$((checks + 1))
run align --alignment own.align --gold pairs.align --base 0
aer=${out#AER } aer=${aer%%.*}
[[ $aer -lt 40 ]] || mismatch "without gold a head was chosen that has an error rate of $aer %"
head -n 2 pairs.tsv >two.tsv
run align --model model --pairs two.tsv
expect_match '^qkv: note: layer [12], head [12], shift 0: its links tell the most about the words, as far as so few pairs can show; ' "$err"
run align --model model --pairs two.tsv --quiet
[[ -z $err && $(wc -l <<<"$out") == 2 ]] || mismatch "--quiet: $out $err"
run align --model model --pairs two.tsv --layer 2 --head 1 --shift 0 --json
expect_match '^\{"by":\{"layer":2,"head":1,"shift":0\},"alignments":\[\[(\[[012],[012]\],?)+\],\[(\[[012],[012]\],?)+\]\]\}$' "$out"
run align --model model --pairs two.tsv --layer 2 --head 1 --shift 0 --base 1 --json
expect_match '"alignments":\[\[(\[[123],[123]\],?)+\],\[(\[[123],[123]\],?)+\]\]\}$' "$out"
run train --data pairs.tsv --tokenizer spaces --min-count 1 --hidden 16 --embed 16 --epochs 1 --quiet -o recurrent
for option in --layer --head --shift; do
  expect 1 'qkv: error: recurrent: this model has a single attention map; --layer, --head and --shift are for Transformers' \
    align --model recurrent --pairs two.tsv $option 1
done
expect 1 'qkv: error: --layer 3: the last layer of the decoder of model is 2' align --model model --pairs pairs.tsv --layer 3
expect 1 'qkv: error: --head 3: the last head of the attention of model is 2' align --model model --pairs pairs.tsv --head 3

# The tokens of this model are words: both units give the same links. A figure holds the words and frames every link.
expect 0 '' align --model model --pairs two.tsv --layer 2 --head 1 --shift 0
words=$out
expect 0 '' align --model model --pairs two.tsv --layer 2 --head 1 --shift 0 --unit pieces
expect_out "$words"
expect 0 '' align --model model --pairs two.tsv --layer 2 --head 1 --shift 0 --plot links.svg
expect_out ''
checks=$((checks + 1))
for word in $(tr '\t' ' ' <two.tsv); do grep -q ">$word<" links.svg || mismatch "links.svg has no $word"; done
expect 0 'qkv: note: links.svg shows the first 12 of 108 pairs' align --model model --pairs pairs.tsv --layer 2 --head 1 --shift 0 --plot links.svg
expect 2 'qkv: error: --unit: got "letters", expected one of words, pieces' align --model model --pairs two.tsv --unit letters
run align --model model --pairs two.tsv --plot links.pdf
[[ $code != 0 && $err == *.svg* ]] || mismatch "--plot links.pdf: $code $err"
