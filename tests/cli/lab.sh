# qkv lab: the list, one lab with its figures, a note, both languages, names that do not exist.
run lab
expect_match '^0 0 +engine .*10\.1 +cues +Attention cues.*10\.3 +scoring +Attention scoring functions.*10\.4 +bahdanau +Bahdanau attention.*10\.5 +multi-head +Multi-head attention.*10\.6 +self-attention +Self-attention.*10\.7 +transformer +The Transformer' "$code $out"
run --lang zh lab
expect_match '10\.1 +cues +注意力提示' "$out"

run lab 10.1 --out d
expect_match '^0 10\.1 Attention cues.*== The words ==.*ok    A query moves the weight.* claims, 0 failed; [0-9]+ figure files in d$' "$code $out"
for figure in desk-weights identity random-softmax database covariance; do
  expect_match '<svg.*</svg>' "$(cat d/$figure.svg)"
  expect_match '^.PNG' "$(head -c 4 d/$figure.png | tr -d '\211' | sed 's/^/x/')"
done
[[ ! -e d/cues.md ]] || mismatch "a note without --format md"

run lab scoring --out n --format md --seed 3
expect_match '^0 [^=]* claims, 0 failed' "$code $out"
expect_match '^# 10\.3 Attention scoring functions' "$(cat n/scoring.md)"
for figure in $(sed -n 's/^!\[.*\](\(.*\))$/\1/p' n/scoring.md); do [[ -s n/$figure ]] || mismatch "the note shows $figure, which is not there"; done
expect_match '\[\[\[2, 3, 4, 5\]\],.*\[\[10, 11, 12, 13\]\]\]' "$(cat n/scoring.md)"
run --lang zh lab scoring --out z --format md
expect_match '^# 10\.3 注意力评分函数.*掩蔽 softmax' "$(cat z/scoring.md)"
expect_match '条论断，0 条不成立' "$out"
expect_match '>键<.*>查询<.*>缩放点积<' "$(tr -d '\n' <z/random-keys.svg)"
expect_match '>Keys<.*>Queries<.*>scaled dot product<' "$(tr -d '\n' <n/random-keys.svg)"

run lab 10.5 --out m --format md
expect_match '^0 [^=]* claims, 0 failed' "$code $out"
expect_match '^# 10\.5 Multi-head attention.*\(2, 4, 100\).*40,000 \| 40,400' "$(cat m/multi-head.md)"
run lab self-attention --out s --format md
expect_match '^0 [^=]* claims, 0 failed' "$code $out"
expect_match '^# 10\.6 Self-attention and positional encoding.*7 in binary is 111' "$(cat s/self-attention.md)"
for figure in m/{demo-heads,one-against-several,head-maps,head-distances,head-importance,pruning} \
  s/{time-by-length,time-by-width,influence,layers-needed,gradient-by-distance,position-columns,position-map,position-products,three-back} \
  s/{depth-tokens,depth-gradients,order-by-position,order-maps,relative-bias}; do
  expect_match '<svg.*</svg>' "$(cat $figure.svg)"
done

# Without a terminal nothing is drawn or coloured; the list says how long a lab takes.
run lab 10.1 --out plain
[[ $out != *$'\x1b'* && $out != *$'\r'* && -z $err ]] || mismatch "escape codes off a terminal, or words on standard error: $err"
expect_match $'\\[figure desk-weights\\] [^\n]*(\n  [^\n]*)*\n  plain/desk-weights\\.svg' "$out"
[[ -z $(awk 'length > 300' <<<"$out") ]] || mismatch "lines that nobody wrapped"
run lab
expect_match '10\.4 +bahdanau +Bahdanau attention: translation +[0-9]+ s' "$out"
# Figures are written even if the reader is gone.
"$QKV" lab 10.2 --out headed 2>headed.err | head -n 1 >headed.out
code=${PIPESTATUS[0]}
[[ $code == 0 && ! -s headed.err && -s headed/shrinking.png ]] || mismatch "lab | head: exit code $code, $(cat headed.err), $(ls headed | tail -n 1)"
# What people type.
expect 0 'qkv: note: 10.1.2 is in lab 10.1' lab 10.1.2 --out exercise --format md
[[ ${out:0:1} != $'\n' ]] || mismatch "--format md begins with an empty line"
expect 0 'qkv: note: 11.1.1 is in lab 10.1' lab 11.1.1 --out exercise
# The list of exercises: section, number, kind, time, title.
run lab --list
expect_match $'^0 10\\.4 +9\\.5\\.1 +experiment +[0-9]+ s more examples, larger vocabularies\n' "$code $out"
expect_match $'\n10\\.7\\.4 +10\\.7\\.5, 11\\.7\\.5 +experiment +[0-9]+ s seven ways out\n' "$out"
expect_match $'\n10\\.1 +11\\.1\\.2 +worked out +[0-9]+ s The gradient is a covariance\n' "$out"
[[ $(wc -l <<<"$out") == 49 ]] || mismatch "lab --list has $(wc -l <<<"$out") lines"
run --lang zh lab --list
expect_match '10\.4 +9\.5\.2 +实验 +[0-9]+ 秒 没有空格的文本' "$out"
expect 2 $'qkv: error: --list takes no names\nhint: qkv lab --list' lab cues --list
printf 'waist,weight\n60,40\n' >waist.csv
expect 1 'qkv: error: waist.csv: line 1: has 1 column, expected two separated by a tab' lab 9.7 --data waist.csv --quiet
expect_out ''
run --lang=zh-CN lab
expect_match '注意力提示' "$out"
expect 2 'qkv: error: --lang: got "klingon", expected one of en, zh' --lang klingon lab
expect 0 '' lab engine cues --out both --quiet
[[ -s both/cues/identity.svg && -d both/engine ]] || mismatch "figures of two labs are not in two folders"

expect 0 '' lab cues --quiet --out q
expect_out ''
expect 2 'qkv: error: there is no lab "nosuch"
hint: qkv lab lists all labs' lab cues nosuch --out twice
[[ ! -e twice ]] || mismatch "a lab was run before the next one was looked for"
run lab 11.1 --format md --out english
expect_match $'figure files in english\nenglish/cues\\.md$' "$out"
expect 2 $'qkv: error: there is no lab "bahdanou"\nhint: did you mean "bahdanau"?' lab bahdanou
expect 2 'qkv: error: there is no lab "nosuch"
hint: qkv lab lists all labs' lab nosuch
expect 2 'qkv: error: --format: got "pdf", expected one of text, md' lab cues --format pdf
# Labs 10.4 and 10.7 train for a while: the tour runs them. Here only their arguments are checked.
expect 2 $'qkv: error: --data: lab cues takes no data\nhint: labs 10.4 and 10.7 do' lab cues --data fra.txt
expect 1 'qkv: error: cannot open nosuch.txt: No such file or directory' lab bahdanau --data nosuch.txt --quiet
expect 1 'qkv: error: cannot open nosuch.txt: No such file or directory' lab transformer --data nosuch.txt --quiet
