# With --lang zh, mistakes and their hints are answered in Chinese: options, values, files, settings, data.
# No answer has three English words in a row, other than names, options, settings, file names and quoted text.
english() {
  sed -E 's/"[^"]*"//g; s/qkv [a-z]+( [^ ，；：。]*[-.\/][^ ，；：。]*)*//g; s/--?[a-z][-a-z0-9]*//g; s/[A-Za-z0-9_-]*[._\/][A-Za-z0-9_.\/-]*//g; s/\[[a-z_]+\]//g; s/ [0-9]+//g' <<<"$1" |
    grep -E '[A-Za-z]{2,}( +[A-Za-z]+){2,}'
}
mistake() {  # CODE ARGS...
  local want=$1 found
  shift
  run --lang zh "$@"
  checks=$((checks + 1))
  [[ $code == "$want" ]] || mismatch "qkv $*: exit code $code, expected $want; it said: $err"
  [[ $err == 'qkv：错误：'* ]] || mismatch "qkv $*: standard error is not an error in Chinese: $err"
  found=$(english "$err") && mismatch "qkv $*: English in $err"
}
z='qkv：错误：'
printf 'a\tb\nalone\n' >one.tsv
printf 'ok\nb\xe9te\n' >latin.txt
printf 'x,y\n1,2\n3,word\n' >bad.csv
printf 'x,y\n1,2\n3,4\n' >good.csv
printf 'training:\n  epoch: 3\n' >key.yaml
printf 'training:\n  epochs: many\n' >value.yaml
printf 'Hi .\n' >hyp.txt
printf 'Hi .\nHo .\n' >ref.txt
printf 'not an array' >bad.npy
: >empty.txt
mkdir folder

expect 2 "$z--preset：“d2l-tranformer”无效，应为 bahdanau, d2l-bahdanau, d2l-en-bahdanau, d2l-en-seq2seq, d2l-en-transformer, d2l-seq2seq, d2l-transformer, d2l-vit, lm, masked-lm, multi30k-de-en, multi30k-en-de, multi30k-en-fr, nano-lm, transformer-base, transformer-tiny, transformer, vit-fashion, vit 之一
提示：是否想输入“d2l-transformer”？" --lang zh train --preset d2l-tranformer
expect 1 "${z}无法打开 none.txt：没有该文件或文件夹" --lang zh data vocab none.txt
expect 1 "${z}model.hidden 30 不能被 model.heads 4 整除" --lang zh train --preset transformer --hidden 30 --heads 4 -o x

mistake 2 xyzzy                                                # the command line
mistake 2 trian
mistake 2 train --presett transformer
mistake 2 train
mistake 2 info --threads
mistake 2 info --threads many
mistake 2 info --seed 1 --seed 2
mistake 2 info --quiet=3
mistake 2 info --kernel-target z80
mistake 2 lab 12.9
mistake 2 data vocabs
mistake 2 data waist --size 3
mistake 2 data vocab
mistake 2 attend --query q.npy
mistake 2 score hyp.txt
mistake 2 score --ref ref.txt --metric blue hyp.txt
mistake 2 translate
mistake 2 translate --model m --nbest 5 --beam 2
mistake 2 regress --data good.csv --plot fit.bmp
mistake 2 regress --data good.csv --bandwidth wide
mistake 1 data vocab latin.txt                                 # files
mistake 1 data vocab empty.txt
mistake 1 data vocab folder
mistake 1 data en-fr --size 3 -o gone/pairs.tsv
mistake 1 info bad.npy
mistake 1 info none
mistake 1 translate --model gone
mistake 1 plot none.csv
mistake 1 regress --data bad.csv                               # data
mistake 1 score --ref ref.txt hyp.txt
mistake 1 score --ref ref.txt -
mistake 1 data split one.tsv -o x
mistake 1 data subwords hyp.txt --size 4000 -o x.model
mistake 1 data fra-eng --from hyp.txt
mistake 1 train -c key.yaml --data en-fr -o x                  # settings
mistake 1 train -c value.yaml --data en-fr -o x
mistake 2 train --preset transformer --epochs many
mistake 2 train --preset transformer --kind seq2seq
mistake 1 train --data gone.tsv -o x
mistake 1 train --data one.tsv -o x
mistake 1 train --data en-fr --momentum 0.5 -o x
mistake 1 train --data en-fr --patience 3 --average-last 0.5 -o x
mistake 1 train --data en-fr --shared-vocabulary true -o x
mistake 1 train --source a.txt -o x

# Results for people, too.
run --lang zh info
found=$(english "$out" | grep -v '^库\|^CPU') && mismatch "qkv info: English in $found"
expect_match '编译器 .*内核 .*线程 ' "$out"
npy one.npy '<f4' '(1,)' '\x00\x00\x80\x3f'
expect 0 '' --lang zh info one.npy
expect_match '^one.npy：npy，1 个数组，1 个元素，[0-9]+ 字节' "$out"
expect 0 '' --lang zh data attention -o arrays
expect 0 '' --lang zh attend --query arrays/q.npy --key arrays/k.npy --value arrays/v.npy --causal --explain
expect_match '^输入 .*评分 .*缩放 .*掩码 .*softmax .*输出 ' "$out"
run --lang zh train --data en-fr --corpus-size 300 --tokenizer words --hidden 8 --embed 8 --epochs 1 -o tiny
expect_match '个句对，.*词表 .*分词方式：words，文本转为小写.*第 1/1 轮 第 .* 损失 .*训练用时 ' "$err"
found=$(english "$(grep -v '=>\|：echo\|qkv ' <<<"$err")") && mismatch "qkv train: English in $found"
run --lang zh train --data en-fr --corpus-size 300 --tokenizer words --hidden 8 --embed 8 --epochs 1 -o tiny
expect_match '早已训练完' "$err"
run --lang zh info tiny
expect_match '模型 .*数据 .*分词 .*训练 .*参数 .*文件 ' "$out"
found=$(english "$out") && mismatch "qkv info: English in $found"
true
