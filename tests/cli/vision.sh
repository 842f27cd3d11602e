# Images from end to end: drawn pictures, training, resuming, classifying, looking at attention, checking, and what is refused.
small=(--image-size 16 --patch 4 --hidden 16 --ffn 16 --heads 2 --layers 2 --batch-rows 32 --checkpoint-seconds 0)
# expect_count N TEXT FILE: FILE has TEXT N times.
expect_count() { local n; checks=$((checks + 1)); n=$(grep -oF -- "$2" "$3" | wc -l); [[ $n == "$1" ]] || mismatch "$3 has $2 $n times, expected $1"; }

# Drawn pictures: a folder by class, IDX files, a sheet; the same for the same seed.
expect 0 '' data pictures --count 40 --side 16 --seed 3 -o some
expect_match '^10$' "$(ls some | wc -l)"
expect_match '^4$' "$(ls some/star | wc -l)"
expect 0 '' data pictures --count 40 --side 16 --seed 3 -o again
expect_match '^$' "$(diff -r some again)"
expect 0 '' data pictures --count 40 --side 16 --seed 3 -o my-images-idx3-ubyte
expect_match '^10256 48$' "$(stat -c %s my-images-idx3-ubyte my-labels-idx1-ubyte | tr '\n' ' ' | sed 's/ $//')"
expect 0 '' data pictures --count 30 -o sheet.png
expect_match '^PNG' "$(head -c 4 sheet.png | tail -c 3)"
expect 2 'qkv: error: the option --output PATH is missing' data pictures
expect 2 'qkv: error: --count 3000: a sheet has at most 2000 pictures' data pictures --count 3000 -o sheet.png

# Training on the built-in pictures, with accuracy; repeating the command says that it is finished.
expect_match 'epoch 2/2 step 20/20 loss [0-9.]+ valid [0-9.]+ accuracy 0\.[0-9]+ [0-9,]+ images/s' \
  "$("$QKV" train --kind vision --images pictures --picture-count 320 "${small[@]}" --epochs 2 -o vit 2>&1)"
run train --kind vision --images pictures --picture-count 320 "${small[@]}" --epochs 2 -o vit
expect_match 'vit: already finished' "$err"
expect_match '^2$' "$(grep -c valid_accuracy vit/metrics.jsonl)"
expect 0 '' train --images pictures --picture-count 320 "${small[@]}" --epochs 2 -o same --quiet   # --images alone selects the task
cmp vit/model.safetensors same/model.safetensors || mismatch "the same training gave other weights"
expect 0 '' train --kind vision --images pictures --picture-count 320 "${small[@]}" --epochs 2 -o one --quiet --threads 1
cmp vit/model.safetensors one/model.safetensors || mismatch "one thread gave other weights"

# Killed and resumed: the same bits.
for after in 0.3 0.3 0.3; do timeout -s KILL $after "$QKV" train --images pictures --picture-count 320 "${small[@]}" --epochs 2 -o killed --quiet; done 2>/dev/null
expect 0 '' train --images pictures --picture-count 320 "${small[@]}" --epochs 2 -o killed --quiet
cmp vit/model.safetensors killed/model.safetensors || mismatch "a killed training ended with other weights"

# Folders by class and IDX files.
expect 0 '' train --images some --valid-share 0.25 "${small[@]}" --epochs 1 -o folder --quiet
expect 0 '' train --images my-images-idx3-ubyte --valid-share 0.25 --classes 'a,b,c,d,e,f,g,h,i,j' "${small[@]}" --epochs 1 --flip true --shift 1 -o idx --quiet
run info idx
expect_match 'images      16 x 16 pixels, 10 classes: a, b, c, d, e, f, g, h, i(,| and) j' "$out"
run info vit
expect_match 'model       vision transformer, patches of 4 x 4 pixels, 2 layers, hidden 16, 2 heads, ffn 16' "$out"
expect_match 'training    2 of 2 epochs, loss [0-9.]+, validation loss [0-9.]+.*, accuracy 0\.[0-9]+' "$out"
run info --json vit
expect_match '"valid_accuracy": 0\.' "$out"
expect_match '"classes": \[' "$out"

# Classifying: PNG files, several; top; JSON; IDX with labels beside it: accuracy and confusion.
expect 0 '' classify --model vit some/star/1.png some/ring/2.png
expect_match '^some/star/1.png: [a-z]+ 0\.[0-9]{3}(, [a-z]+ 0\.[0-9]{3}){4}
some/ring/2.png: [a-z]+ 0\.[0-9]{3}' "$out"
expect 0 '' classify --model vit --top 1 some/star/1.png
expect_match '^some/star/1.png: [a-z]+ 0\.[0-9]{3}$' "$out"
expect 0 '' classify --model vit --json --top 2 some/star/1.png
expect_match '^\{"file":"some/star/1.png","class":"[a-z]+","probability":0\.[0-9]+,"top":\[\{"class":"[a-z]+","probability":0\.[0-9]+\},\{' "$out"
expect 0 '' classify --model vit my-images-idx3-ubyte
expect_match '^accuracy 0\.[0-9]{4} \([0-9]+ of 40\), loss [0-9.]+
rows are labels, columns are answers
ring ' "$out"
expect 0 '' classify --model vit --each --json my-images-idx3-ubyte
expect_match '^41$' "$(wc -l <<<"$out")"
expect_match '"image":40,"class":"[a-z]+",.*"label":"dots"\}' "$out"
expect 0 '' classify --model vit my-images-idx3-ubyte --confusion confusion.svg
expect_count 2 '>triangle<' confusion.svg
cp my-images-idx3-ubyte alone && gzip -k alone
expect 0 '' classify --model vit alone.gz
expect_match '^alone.gz:1: ' "$out"
expect 0 '' classify --model vit --labels my-labels-idx1-ubyte alone
expect_match '^accuracy' "$out"
expect 0 '' --lang zh classify --model vit my-images-idx3-ubyte
expect_match '^准确率 ' "$out"

# Attention over the image: figures, arrays, JSON, one patch.
expect 0 '' inspect --model vit some/star/1.png -o heads.svg
expect_match '^some/star/1.png: [a-z]+ 0' "$out"
expect_count 1 '>what the class token attends to; colours from 0 to the largest weight of each panel<' heads.svg
expect_count 4 'data:image/png' heads.svg
expect 0 '' inspect --model vit --rollout --values some/star/1.png -o all.png
expect_match '^PNG' "$(head -c 4 all.png | tail -c 3)"
expect 0 '' inspect --model vit --rollout --layer 2 --patch 2,3 some/star/1.png -o patch.svg
expect_count 1 '>what the patch in row 2, column 3 attends to; colours from 0 to the largest weight of each panel<' patch.svg
expect_count 1 '>Layers 1 to 2, all heads, rollout<' patch.svg
expect 0 '' inspect --model vit some/star/1.png
expect_match 'Layer 2, head 2' "$out"
expect 0 '' inspect --model vit --json some/star/1.png
expect_match '"viewer":"class token","attention":\[\[\[\[0\.' "$out"
expect 0 '' inspect --model vit some/star/1.png -o maps.npz
expect 0 '' info maps.npz
expect_match 'weights +.*\(2, 2, 17, 17\)' "$out"
expect 0 '' check --model vit
expect_match '^vit: drawn pictures: 16
 +tried +scores +largest
 +16 +160 +0  change the other images of the batch, and their order: ok
 +16 +160 +[0-9.e-]+  compute every token of the last layer, not only those that answers need: ok
control: 16 of 16 patches had an effect when they were changed$' "$out"
expect 0 '' check --model vit --data my-images-idx3-ubyte --count 5 --json
expect_match '^\{"model":"vit","images":5,"passed":true,' "$out"
expect 0 '' plot vit/metrics.jsonl --y loss --y valid_accuracy -o curve.svg

# What is refused: another size, damaged files, alpha, the wrong kind of file or model, labels without images.
expect 0 '' data pictures --count 10 --side 20 -o large
expect 0 '' train --images some "${small[@]:2}" --epochs 1 -o strict --quiet   # without --image-size
expect 1 'qkv: error: large/star/1.png: has 20 x 20 pixels, but the model was trained with 16 x 16
hint: --resize stretches images to the model'"'"'s size' \
  classify --model strict large/star/1.png
expect 0 '' classify --model strict --resize large/star/1.png
expect 0 '' classify --model vit large/star/1.png   # trained with --image-size: any size is stretched
head -c 60 some/star/1.png >cut.png
expect 1 'qkv: error: cut.png: the PNG file is cut off' classify --model vit cut.png
echo text >text.png
expect 1 'qkv: error: text.png: is neither a PNG nor an IDX file' classify --model vit text.png
expect 1 'qkv: error: cannot open none.png: No such file or directory' classify --model vit none.png
printf '\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x04\x00\x00\x00\x03\x08\x06\x00\x00\x00\xb4\xf4\xae\xc6\x00\x00\x00\x21\x49\x44\x41\x54\x78\x9c\x63\xe4\x12\x91\xfb\xcf\x80\x04\x98\x60\x8c\xef\xef\x9e\xfe\x47\x11\xe0\x14\x92\x66\x64\x60\x60\x60\x00\x00\x95\x5e\x05\x41\x72\x65\x4b\xee\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82' >alpha.png
expect 1 'qkv: error: alpha.png: has transparent pixels, expected an opaque picture
hint: put it on a background, for example with: convert alpha.png -background black -alpha remove OUT.png' classify --model vit alpha.png
head -c 500 my-images-idx3-ubyte >cut-idx
expect 1 'qkv: error: cut-idx: its header promises 10,240 bytes, but the file is too short for them' classify --model vit cut-idx
expect 1 'qkv: error: my-labels-idx1-ubyte: holds labels, expected images of shape (count, height, width)
hint: give the file of their images' \
  classify --model vit my-labels-idx1-ubyte
expect 1 'qkv: error: some/star/1.png: is not an IDX file, so no labels go with it' classify --model vit --labels my-labels-idx1-ubyte some/star/1.png
expect 2 'qkv: error: --labels goes with one IDX file, got 2 files' classify --model vit --labels my-labels-idx1-ubyte a b
expect 2 'qkv: error: the option --model DIR is missing
hint: qkv train --preset vit makes one in runs/vit' classify some/star/1.png
expect 2 'qkv: error: give at least one image: a PNG or IDX file' classify --model vit
expect 1 'qkv: error: alone: has no labels; give their file with data.labels' train --images alone "${small[@]}" -o x
expect 1 'qkv: error: my-labels-idx1-ubyte: holds labels, expected images of shape (count, height, width)
hint: give the file of their images' \
  train --images my-labels-idx1-ubyte --labels my-labels-idx1-ubyte "${small[@]}" -o x
expect 1 'qkv: error: model.patch is 5, but the images have 16 x 16 pixels, which are not multiples of it' train --images some --patch 5 -o x
[[ ! -e x ]] || mismatch "a refused training left a folder"
printf 'a b\tc d\nb a\td c\n' >pairs.tsv
expect 0 '' train --data pairs.tsv --tokenizer spaces --min-count 1 --kind transformer --hidden 16 --heads 2 --ffn 16 --epochs 1 --quiet -o translation
expect 1 'qkv: error: translation: holds a translation model, expected a model that classifies images
hint: qkv translate --model translation uses it' \
  classify --model translation some/star/1.png
expect 1 'qkv: error: vit: holds a model that classifies images, expected a translation model
hint: qkv classify --model vit uses it' translate --model vit pairs.tsv
expect 2 'qkv: error: give an image: a PNG file' inspect --model vit
expect 1 'qkv: error: data.classes does not apply to some: the names of its folders are the classes' train --images some --classes a,b "${small[@]}" -o none
expect 2 'qkv: error: --patch 9,1: expected a row from 1 to 4 and a column from 1 to 4' inspect --model vit --patch 9,1 some/star/1.png
expect 2 'qkv: error: --patch and --resize are for models that classify images' inspect --model translation --patch 1,1 a b
expect 1 'qkv: error: vit/config.yaml: model.patch is 4, but 8 was requested
hint: --patch 4 resumes it; --restart starts over; -o names another folder' \
  train --images pictures --picture-count 320 "${small[@]/#4/8}" --epochs 2 -o vit
