# Output on a terminal, with script(1): widths, colours, figures, bars.
if ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  echo "skipped: this machine gives no pseudo-terminal (is /dev/pts mounted?)"
  exit 77
fi
on_terminal() { # COLUMNS COMMAND: what it wrote
  TERM=xterm-256color script -qec "stty cols $1 rows 50; $2" /dev/null </dev/null | tr -d '\r'
}
without_codes() { sed 's/\x1b\[[0-9;]*[mK]//g'; }
for width in 60 80 120; do
  for language in en zh; do
    shown=$(on_terminal $width "$QKV lab 10.1 10.3 --lang $language --log-format none --out t" | without_codes | wc -L)
    checks=$((checks + 1))
    ((shown <= width && shown > width / 2)) || mismatch "labs in $language are $shown wide on $width columns"
  done
done
out=$(on_terminal 80 "$QKV lab 10.1 --out t")
expect_match $'\x1b\\[1m== The words ==' "$out"
expect_match $'\x1b\\[32mok\x1b\\[0m ' "$out"
expect_match $'▀.*t/identity\\.svg' "$out"
out=$(on_terminal 80 "$QKV lab 10.1 --out t --no-figures")
[[ $out != *▀* && $out == *'[figure'* ]] || mismatch "--no-figures draws, or names none"
out=$(on_terminal 80 "NO_COLOR=1 $QKV lab 10.1 --out t --log-format none")
[[ $out != *$'\x1b'* ]] || mismatch "NO_COLOR: escape codes"

# A bar while a lab trains, cleared afterwards.
out=$(on_terminal 80 "$QKV lab 10.5 --no-figures --out t")
expect_match '\[#*-+\] +[0-9]+ %  [-0-9:]+ left  training ' "$out"
out=$(on_terminal 80 "$QKV tour 10.1 10.5 --out t")
expect_match '2/2 \[#+-*\] 0:[0-9]+, about 0:[0-9]+ left  10\.5 ' "$out"
expect_match '2 of 2  10\.5  Multi-head attention · ' "$out"

# The bar of a training ends full; its header is wrapped between words.
for a in {0..9}; do for b in {0..9}; do printf '%s %s\t%s %s\n' $a $b $b $a; done; done >pairs.tsv
out=$(on_terminal 70 "$QKV train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 8 --hidden 8 --epochs 3 -o runs/of-the-terminal")
expect_match 'epoch 3/3 \[#+\] step [0-9]+/[0-9]+  loss ' "$out"
expect_match $'parameters,\n  runs/of-the-terminal\n' "$out"
expect_match 'next: echo .* \| qkv translate --model runs/of-the-terminal' "$out"
out=$(on_terminal 80 "$QKV align --model runs/of-the-terminal --pairs pairs.tsv >links.txt")
expect_match '\[-+\] +0 %  -:-- left  aligning 100 pairs' "$out"
