# qkv inspect on a Transformer: three figures, one head, other readings of the weights, every form of output, and what it refuses.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  (( (a + b + c) % 2 )) || printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
common=(--data pairs.tsv --tokenizer spaces --min-count 1 --batch-rows 16 --quiet)
run train "${common[@]}" --kind transformer --hidden 16 --heads 2 --ffn 16 --layers 3 --decoder-layers 2 --epochs 2 -o model
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
run train "${common[@]}" --hidden 16 --embed 16 --epochs 1 -o recurrent
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
pair=(--model model 1 2 3 --target 'trois deux un')
# expect_count N TEXT FILE: FILE has TEXT N times.
expect_count() { local n; checks=$((checks + 1)); n=$(grep -oF -- "$2" "$3" | wc -l); [[ $n == "$1" ]] || mismatch "$3 has $2 $n times, expected $1"; }

# Three figures in one picture: rows are layers, columns heads, words on the axes.
expect 0 '' inspect "${pair[@]}" -o all.svg
expect_out $'trois deux un\nall.svg'
expect_count 1 '>Encoder self-attention<' all.svg
expect_count 1 '>Decoder self-attention<' all.svg
expect_count 1 '>Encoder-decoder attention<' all.svg
expect_count 3 '>Head 1<' all.svg
expect_count 3 '>Head 2<' all.svg
expect_count 6 '>Words looked at<' all.svg
for l in 1 2; do for rows in queries 'words read' 'words written'; do expect_count 1 ">Layer $l, $rows<" all.svg; done; done
expect_count 1 '>Layer 3, queries<' all.svg
expect_count 4 '>&lt;bos&gt;<' all.svg    # the decoder reads it: two rows of panels, two columns
expect_count 9 '>&lt;eos&gt;<' all.svg    # the encoder reads it, in three rows and two columns; cross: written in two rows, read in two columns
expect_count 6 '>trois<' all.svg
expect 0 '' inspect "${pair[@]}" --kind decoder -o one.svg
expect_count 2 '>Head ' one.svg
expect 0 '' inspect --model model 1 2 3 -o all.png
expect_match $'\nall.png$' "$out"
expect_match '^PNG' "$(head -c 4 all.png | tail -c 3)"
# HTML is the explorer's page with recorded answers, or, for what that has no bench for, a page of figures.
expect 0 '' inspect "${pair[@]}" -o all.html
expect_out $'trois deux un\nall.html'
expect_count 1 'id="qkv-recorded"' all.html
expect_count 1 '"path":"/maps"' all.html
expect_count 3 '"path":"/heads"' all.html
expect_count 0 '</script><' all.html
expect 0 '' inspect "${pair[@]}" --values -o figures.html
expect_count 0 'id="qkv-recorded"' figures.html
expect_count 6 '<svg ' figures.html
expect 0 '' inspect "${pair[@]}" --lang zh --kind cross -o zh.svg
expect_count 1 '>编码器-解码器注意力<' zh.svg
expect_count 1 '>第 2 层，写出的词<' zh.svg

# A layer, a head, one head large, and the other readings beside the weights.
expect 0 '' inspect "${pair[@]}" --kind encoder --layer 3 -o layer.svg
expect_count 1 '>Encoder self-attention, layer 3<' layer.svg
expect 0 '' inspect "${pair[@]}" --kind cross --layer 2 --head 1 --values --rollout -o head.svg
expect_count 1 '>Encoder-decoder attention, layer 2, head 1<' head.svg
expect_count 1 '>Words written<' head.svg
for title in Weights Value-weighted 'Layer 2, all heads, rollout'; do expect_count 1 ">$title<" head.svg; done
expect 0 '' inspect "${pair[@]}" --kind encoder --values --rollout -o readings.svg
expect_count 1 '>Encoder self-attention, value-weighted<' readings.svg
for title in 'Layer 3, mean of heads' 'Layer 1, all heads, rollout' 'Layers 1 to 3, all heads, rollout'; do expect_count 1 ">$title<" readings.svg; done

# Many words: rows of panels are folded and keep them; if that is too tall they are as wide as a screen; if that is still too tall the
# axes have positions, with a note.
many() { local i; for ((i = 0; i < $1; ++i)); do printf '%s ' $((i % 6)); done; }
expect 0 '' inspect --model model $(many 20) --target 'un deux' --kind encoder --layer 1 -o folded.svg
expect_count 1 '>Head 2<' folded.svg
expect_count 4 '>&lt;eos&gt;<' folded.svg   # two panels, one in a row: both have both axes
expect 0 '' inspect --model model $(many 46) --target "$(many 3 | sed 's/[0-9]/un/g')" --kind encoder -o wide.svg
expect_count 1 '>Layer 3, queries<' wide.svg
expect_count 5 '>&lt;eos&gt;<' wide.svg   # three rows of two: words on the outer ones
expect 0 'qkv: note: too many heads and words to label: the axes show positions; --layer and --head draw fewer maps, with words' \
  inspect --model model $(many 100) --target 'un deux' --kind encoder -o positions.svg
expect_count 0 '>&lt;eos&gt;<' positions.svg
expect 0 '' inspect --model model $(many 60) --target 'un deux' --kind encoder --layer 2 -o layer.svg
expect_count 4 '>&lt;eos&gt;<' layer.svg

# On the terminal every panel has a title.
expect 0 '' inspect "${pair[@]}" --kind cross
for title in 'Layer 1, head 1' 'Layer 2, head 2'; do expect_match "$title" "$out"; done
expect 0 '' inspect "${pair[@]}" --layer 1 --head 2
for title in 'Encoder self-attention, layer 1, head 2' 'Decoder self-attention' 'Encoder-decoder attention'; do expect_match "$title" "$out"; done
expect_match '<bos>  1\.00  0\.00  0\.00  0\.00' "$out"
expect 0 '' inspect "${pair[@]}" --kind decoder -o page.txt
expect_match 'Layer 2, head 2' "$(cat page.txt)"

# Maps narrower than their titles: titles use the room beside them, and none is cut so that it looks like another.
sed 's/cinq/cinquante-cinq/g' pairs.tsv >long.tsv
run train "${common[@]:2}" --data long.tsv --reverse true --kind transformer --hidden 16 --heads 2 --ffn 16 --epochs 1 -o long
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect 0 '' inspect --model long un deux cinquante-cinq --target '1 2 3 4 5 4 3 2 1' --kind cross
expect_match 'Layer 1, head 1 +Layer 1, head 2' "$out"

# Subwords: no mark of the blank before a word, a dot if it continues a word.
run train "${common[@]:4}" --data long.tsv --tokenizer bpe --vocabulary 30 --shared-vocabulary true --reverse true --kind transformer --hidden 16 --heads 2 --ffn 16 --epochs 1 -o pieces
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect 0 '' inspect --model pieces cinquante-cinq quatre --target '1 2' --kind encoder -o pieces.svg
expect_count 0 '▁' pieces.svg
expect_match '>·[a-z]' "$(cat pieces.svg)"

# Colours: for pictures only.
expect 0 '' inspect "${pair[@]}" --kind cross --range 0,0.5 -o half.svg
expect_match '>0\.5<' "$(cat half.svg)"
expect 0 '' inspect "${pair[@]}" --kind cross --cmap blues --range 0,0.5 -o blues.svg
! cmp -s blues.svg half.svg || mismatch "--cmap changed nothing"
expect 0 '' inspect --model recurrent 1 2 3 --range -1,2 -o range.svg
expect_match '>−1<' "$(cat range.svg)"
expect 2 'qkv: error: --range: got "low", expected two numbers like 4,5.5' inspect "${pair[@]}" --range low
expect 2 'qkv: error: --cmap: got "pink", expected one of viridis, reds, blues, diverging' inspect "${pair[@]}" --cmap pink
expect 2 'qkv: error: --cmap and --range are for pictures; --json and .npz contain numbers' inspect "${pair[@]}" --range 0,1 --json

# Unknown words are noted, on each given side.
expect 0 'qkv: note: the sentence: not in the vocabulary: seven' inspect --model model 1 seven 3 -o unknown.svg
expect 0 $'qkv: note: the sentence: not in the vocabulary: seven\nqkv: note: the translation: not in the vocabulary: sept' \
  inspect --model recurrent 1 seven 3 --target 'trois sept un' -o unknown.svg
expect 0 '' inspect --model model 1 seven 3 -o unknown.svg --quiet

# Numbers: arrays and JSON; padded as in the book.
expect 0 '' inspect "${pair[@]}" --values --rollout -o all.npz
run info all.npz
for array in 'cross +\(2, 2, 4, 4\)' 'cross_values +\(2, 2, 4, 4\)' 'cross_rollout +\(2, 1, 4, 4\)' 'decoder +\(2, 2, 4, 4\)' 'encoder +\(3, 2, 4, 4\)' \
  'encoder_rollout +\(3, 1, 4, 4\)' 'source_tokens +\(11,\) +uint8' 'input_tokens +\(19,\) +uint8' 'output_tokens +\(19,\) +uint8'; do expect_match "$array" "$out"; done
expect 0 '' inspect "${pair[@]}" --steps 10 --kind encoder --layer 1 --head 1 -o padded.npz
run info padded.npz
expect_match 'encoder +\(1, 1, 10, 10\)' "$out"
expect 0 '' inspect "${pair[@]}" --kind decoder --layer 1 --head 1 --json
expect_match '"target_tokens":\["trois","deux","un","<eos>"\],.*"input_tokens":\["<bos>","trois","deux","un"\],"decoder":\[\[\[\[1\.0,0\.0,0\.0,0\.0\],' "$out"
[[ $out != *cross* ]] || mismatch "--kind decoder has a cross attention"

# Gold links frame only cells of the cross-attention.
printf '1 2 3\ttrois deux un\n' >one.tsv
printf '0-2 1-1 2-0\n' >one.align
expect 0 '' inspect --model model --pairs one.tsv --line 1 --gold one.align -o framed.svg
expect_count 12 'class="gold"' framed.svg   # three links in two layers of two heads

# Refusals.
expect 2 'qkv: error: --line goes with --pairs FILE' inspect "${pair[@]}" --line 1
expect 2 'qkv: error: --base goes with --gold FILE' inspect "${pair[@]}" --base 1
expect 1 'qkv: error: --layer 3: the last layer of the decoder attention is 2' inspect "${pair[@]}" --layer 3 -o no.svg
expect 1 'qkv: error: --head 3: the last head of the encoder attention is 2' inspect "${pair[@]}" --head 3 -o no.svg
expect 1 'qkv: error: --steps 3: the sentence has 4 tokens with its <eos>' inspect "${pair[@]}" --steps 3 -o no.svg
expect 1 'qkv: error: the translation is empty' inspect --model model 1 2 3 --target '' -o no.svg
printf '1 2 3\t\n' >gap.tsv
expect 1 'qkv: error: the translation is empty' inspect --model model --pairs gap.tsv --line 1 -o no.svg
expect 2 'qkv: error: --kind: got "self", expected one of all, encoder, decoder, cross' inspect "${pair[@]}" --kind self
expect 1 'qkv: error: recurrent: this model has a single attention map; --kind, --layer, --head, --values, --rollout, --steps and --words are for Transformers' \
  inspect --model recurrent 1 2 3 --values
expect 0 '' inspect --model recurrent 1 2 3 --target 'trois deux un' -o heat.svg
expect_out $'trois deux un\nheat.svg'
[[ ! -e no.svg ]] || mismatch "a refused command wrote a picture"

# Sizes in a configuration are compared with the weights before memory is allocated.
cp -r model claims
sed -i 's/^  hidden: .*/  hidden: 65536/' claims/config.yaml
run inspect --model claims 1 2 3
[[ $code == 1 ]] || mismatch "a model of width 65536: exit code $code"
expect_match '^qkv: error: claims/model.safetensors: "encoder.embedding.weight" has shape \([0-9]+, [0-9]+\), but configuration and vocabularies say \([0-9]+, 65536\)$' "$err"
sed -i 's/^  hidden: .*/  hidden: 15/' claims/config.yaml
expect 1 'qkv: error: claims/config.yaml: model.hidden 15 is not divisible by model.heads 2' inspect --model claims 1 2 3
rm claims/config.yaml && mkdir claims/config.yaml
expect 1 'qkv: error: claims/config.yaml: is not a file; expected the settings that qkv train wrote' inspect --model claims 1 2 3
rmdir claims/config.yaml
: >claims/config.yaml
expect 1 'qkv: error: claims/config.yaml: is empty, expected the settings that qkv train wrote' inspect --model claims 1 2 3
