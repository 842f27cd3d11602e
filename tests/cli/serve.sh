# qkv serve: the real server on loopback, and requests that mean it no good. Each gets its answer, and the server lives.
command -v curl >/dev/null || exit 77
mkdir models
env --default-signal=INT "$QKV" serve --models models --no-training >address.txt 2>notes.txt &
server=$!
trap 'kill -TERM $server 2>/dev/null; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
for _ in {1..100}; do [[ -s address.txt ]] && break; sleep 0.1; done
url=$(cat address.txt)
expect_match '^http://127\.0\.0\.1:[0-9]+/$' "$url"
port=${url##*:} port=${port%/}

# status CURL-OPTIONS... PATH: the HTTP status. post PATH BODY: status and answer.
status() { curl -s -m 30 -o answer.txt -w '%{http_code}' "${@:1:$#-1}" "$url${*: -1}"; }
post() { printf '%s ' "$(status -H 'Content-Type: application/json' --data-binary "$2" "$1")"; cat answer.txt; }
alive() { expect_match '^200$' "$(status health)"; }

alive
expect_match '^200$' "$(status '')"
expect_match '<html' "$(cat answer.txt)"
etag=$(curl -s -D - -o /dev/null "$url" | sed -n 's/^ETag: \(.*\)\r$/\1/p')
expect_match '^304$' "$(status -H "If-None-Match: $etag" '')"
expect_match "Content-Security-Policy: default-src 'none'" "$(curl -s -D - -o /dev/null "$url")"

# Other hosts, other pages, forms.
expect_match '^403$' "$(status -H 'Host: evil.example' health)"
expect_match '^403$' "$(status -H "Host: 127.0.0.1" health)"
expect_match '^200$' "$(status -H "Host: localhost:$port" health)"
expect_match '^403$' "$(status -H 'Origin: http://evil.example' health)"
expect_match '^403$' "$(status -H 'Origin: null' health)"
expect_match '^415$' "$(status -d 'q=1' api/v1/cues)"
expect_match '^415$' "$(status -F 'q=1' api/v1/cues)"
expect_match '^405$' "$(status -X DELETE api/v1/models)"

# Sizes and depths.
head -c 10000000 /dev/zero | tr '\0' ' ' >large.json
expect_match '^413$' "$(status -H 'Content-Type: application/json' -H 'Expect:' --data-binary @large.json api/v1/cues)"
expect_match '^(413|000)$' "$(status -H 'Content-Type: application/json' -H 'Expect:' -H 'Transfer-Encoding: chunked' --data-binary @large.json api/v1/cues)"
expect_match '^(431|413|400|000)$' "$(status -H "X-Large: $(head -c 60000 /dev/zero | tr '\0' x)" health)"
expect_match '^400 .*nested more than 32 levels' "$(post api/v1/cues "$(head -c 100000 /dev/zero | tr '\0' '[')")"
expect_match '^400 .*is not JSON' "$(post api/v1/cues '{"want": ')"
expect_match '^400 .*does not fit in a double' "$(post api/v1/cues '{"want": [1e999, 0]}')"
expect_match '^400 .*does not fit in a double' "$(post api/v1/regress '{"x": [0, 1], "y": [0, -1e999]}')"
expect_match '^400 .*want is missing' "$(post api/v1/cues '{}')"
expect_match '^400 .*"message":"the request is not JSON","type":"invalid_request_error"' "$(post v1/completions '{"prompt": ')"
expect_match '^404 .*there is no model m1' "$(post api/v1/translate '{"model": "m1", "text": "a"}')"
expect_match '^404 .*there is no session' "$(post api/v1/map '{"session": "k1", "name": "cross", "row": [-1, 2]}')"
expect_match '^404$' "$(status --path-as-is ../../etc/passwd)"
expect_match '^404$' "$(status api/v1/nothing)"
alive

# A sender that stops half-way and one that sends a byte per second are cut off after 20 seconds; the end of this test
# looks at them.
slow_sender() { # SECONDS-BETWEEN-BYTES
  local i answer
  exec 4<>"/dev/tcp/127.0.0.1/$port"
  printf 'POST /api/v1/cues HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Ty' "$port" >&4
  for ((i = 0; i < 40; ++i)); do
    read -r -t 1 -u 4 answer && break
    (($? > 128)) || { echo "cut after $SECONDS s"; return; }
    [[ $1 == stops ]] || printf 'p' >&4 || { echo "cut after $SECONDS s"; return; }
  done
  echo "still open after $SECONDS s"
}
(trap '' PIPE; SECONDS=0; slow_sender stops) >stopped.txt 2>/dev/null &
stopped=$!
(trap '' PIPE; SECONDS=0; slow_sender drips) >dripping.txt 2>/dev/null &
dripping=$!

# Listeners that vanish leave room for others: 24 may listen at once.
listeners=()
for _ in {1..24}; do curl -sN "${url}api/v1/events" >/dev/null & listeners+=($!); done
for _ in {1..50}; do [[ $(status -m 1 api/v1/events) == 503 ]] && break; sleep 0.1; done
expect_match 'too many pages are listening' "$(cat answer.txt)"
{ kill -KILL "${listeners[@]}"; wait "${listeners[@]}"; } 2>/dev/null
sleep 2.5
timeout 1 curl -sN "${url}api/v1/events" >events.txt
expect_match 'event: models' "$(cat events.txt)"

# Many at once: more than there are connections.
many() { # CURL-OPTIONS... PATH: the statuses of 200 requests at once
  local clients=() i
  : >many.txt
  for ((i = 0; i < 200; ++i)); do
    curl -s -m 60 -o /dev/null -w '%{http_code}\n' "${@:1:$#-1}" "$url${*: -1}" >>many.txt &
    clients+=($!)
  done
  wait "${clients[@]}"
  sort many.txt | uniq -c | sed 's/^ *//'
}
expect_match '^200 200$' "$(many health)"
expect_match '^200 200$' "$(many -H 'Content-Type: application/json' --data-binary '{"x": [0, 1, 2, 3], "y": [1, 0, 2, 1], "bandwidth": "cv"}' api/v1/regress)"
alive

# 200 that say nothing take all places; when they are gone, others are served at once.
silent=()
for _ in {1..200}; do exec {one}<>"/dev/tcp/127.0.0.1/$port" && silent+=("$one"); done
expect_match '^200$' "${#silent[@]}"
for one in "${silent[@]}"; do exec {one}>&-; done
alive

# Clients that vanish: before the answer, in the middle of what they send, in the middle of what they are sent.
vanish() { exec 5<>"/dev/tcp/127.0.0.1/$port"; printf "$1" "$port" >&5; [[ -z ${2:-} ]] || head -c "$2" <&5 >part.txt; exec 5>&-; }
for _ in {1..20}; do
  vanish 'GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n'
  vanish 'GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' 1000
  vanish 'POST /api/v1/cues HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n{"want": ['
  vanish 'GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' 200
done
alive
expect_match '^200$' "$(status -m 10 '')"

# Refusals speak the language of the browser.
status -H 'Accept-Language: zh-CN,zh;q=0.9' -H 'Host: evil.example' health >/dev/null
expect_match '本服务器' "$(cat answer.txt)"
status -H 'Content-Type: application/json' -H 'Expect:' -H 'Accept-Language: zh' --data-binary @large.json api/v1/cues >/dev/null
expect_match '请求' "$(cat answer.txt)"
status -H 'Accept-Language: zh' api/v1/nothing >/dev/null
expect_match '没有' "$(cat answer.txt)"

# A second server cannot have the port, and says what to do.
expect 1 "qkv: error: port $port is in use by another program
hint: --port N takes another one; without it, a free one is found" serve --models models --port "$port"

# A model comes, answers, and is deleted while it is open.
"$QKV" -q train --preset transformer --corpus-size 300 --epochs 1 --warmup 0 --hidden 16 --ffn 16 -o models/small >/dev/null 2>&1
for _ in {1..50}; do [[ $(curl -s "${url}api/v1/models") == *'"state":"ready"'* ]] && break; sleep 0.2; done
expect_match '^200 .*"hypotheses"' "$(post api/v1/translate '{"model": "m1", "text": "the cat sleeps .", "beam": 2}')"
expect_match '^200 .*"session":"k' "$(post api/v1/maps '{"model": "m1", "text": "the cat sleeps ."}')"
session=$(sed 's/.*"session":"\(k[0-9]*\)".*/\1/' answer.txt)
expect_match '^400 .*row: expected' "$(post api/v1/map "{\"session\": \"$session\", \"name\": \"cross\", \"row\": [-1, 2]}")"
expect_match '^200 .*translatedText' "$(post translate '{"q": "the cat sleeps .", "source": "en", "target": "fr"}')"
# A form as LibreTranslate's clients send it; never from a page, and never elsewhere.
expect_match '^200$' "$(status --data-urlencode 'q=the cat sleeps .' -d 'source=en&target=fr' translate)"
expect_match '"translatedText":"' "$(cat answer.txt)"
expect_match '^403$' "$(status -H 'Origin: http://evil.example' -d 'q=a&source=en&target=fr' translate)"
expect_match '^415$' "$(status -H "Origin: http://127.0.0.1:$port" -d 'q=a&source=en&target=fr' translate)"
expect_match '^415$' "$(status -H 'Sec-Fetch-Site: none' -d 'q=a&source=en&target=fr' translate)"
expect_match '^415$' "$(status -d 'model=m1&text=a' api/v1/translate)"
# A row and a column that are not of the map, and a client that is gone before its translation is done.
expect_match '^400 .*column: expected' "$(post api/v1/map "{\"session\": \"$session\", \"name\": \"cross\", \"row\": [0, 1], \"column\": [0, 1000000]}")"
for _ in {1..20}; do
  timeout 0.02 curl -s -o /dev/null -H 'Content-Type: application/json' -d '{"model": "m1", "text": "the cat sleeps .", "beam": 8, "view": "gone", "stream": true}' "${url}api/v1/translate"
done
alive
rm -rf models/small
expect_match '^410 .*is gone' "$(post api/v1/translate '{"model": "m1", "text": "the cat sleeps ."}')"
alive

# A run that is still training says so and answers from its last checkpoint; interrupted, it says that.
state() { curl -s "${url}api/v1/models" | grep -o '"name":"'"$1"'","state":"[a-z]*"' | sed 's/.*:"//; s/"//'; }
until_state() { local i; for ((i = 0; i < 150; ++i)); do [[ $(state "$1") == "$2" ]] && break; sleep 0.2; done; state "$1"; }
"$QKV" -q train --preset transformer --corpus-size 300 --epochs 100000 --warmup 0 --hidden 16 --ffn 16 -o models/live >/dev/null 2>&1 &
training=$!
expect_match '^training$' "$(until_state live training)"
id=$(curl -s "${url}api/v1/models" | grep -o '"id":"m[0-9]*","name":"live"' | sed 's/"id":"\(m[0-9]*\)".*/\1/')
for _ in {1..100}; do [[ $(post api/v1/translate "{\"model\": \"$id\", \"text\": \"the cat sleeps .\"}") == 200* ]] && break; sleep 0.2; done
expect_match '^200 .*"hypotheses"' "$(post api/v1/translate "{\"model\": \"$id\", \"text\": \"the cat sleeps .\"}")"
kill -TERM $training
wait $training
expect_match '^130$' "$?"
expect_match '^interrupted$' "$(until_state live interrupted)"
expect_match '"resume":"qkv train -c models/live/config.yaml -o models/live"' "$(curl -s "${url}api/v1/models")"
expect_match '^200 .*"hypotheses"' "$(post api/v1/translate "{\"model\": \"$id\", \"text\": \"the cat sleeps .\"}")"

# Ctrl-C ends the server, also while a listener and slow senders are there.
wait $stopped $dripping
expect_match '^cut after 2[0-9] s$' "$(cat stopped.txt)"
expect_match '^cut after 2[0-9] s$' "$(cat dripping.txt)"
curl -sN "${url}api/v1/events" >/dev/null &
listener=$!
sleep 0.3
kill -INT $server
wait $server
expect_match '^130$' "$?"
wait $listener

# A training in the background that fails is there to see for a page that is opened later.
mkdir broken
touch broken/explorer
env --default-signal=INT "$QKV" serve --models broken --port "$port" >address.txt 2>notes.txt &
server=$!
for _ in {1..600}; do [[ $(curl -s "${url}api/v1/about") == *'"state":"failed"'* ]] && break; sleep 0.2; done
expect_match '"background":\{"state":"failed","name":"explorer","error":"the training of explorer failed: .*broken/explorer' "$(curl -s "${url}api/v1/models")"
expect_match '"background":\{"state":"failed"' "$(curl -s "${url}api/v1/about")"
kill -INT $server
wait $server
expect_match '^130$' "$?"

# One that is killed says so.
env --default-signal=INT "$QKV" serve --models fresh --port "$port" >address.txt 2>notes.txt &
server=$!
for _ in {1..100}; do [[ $(curl -s "${url}api/v1/about") == *'"state":"training"'* ]] && break; sleep 0.1; done
kill -KILL "$(cat "/proc/$server/task/$server/children")"
for _ in {1..100}; do [[ $(curl -s "${url}api/v1/about") == *'"state":"failed"'* ]] && break; sleep 0.2; done
expect_match '"background":\{"state":"failed","name":"explorer","error":"the training of explorer was ended from outside: Killed"' "$(curl -s "${url}api/v1/about")"
kill -INT $server
wait $server
expect_match '^130$' "$?"

# From the first answer on the server knows its own name: nobody who asks while it starts is refused.
(while ! [[ -e done ]]; do curl -s -m 5 -o /dev/null -w '%{http_code}\n' "${url}health"; done) >early.txt &
early=$!
for _ in 1 2 3; do
  env --default-signal=INT "$QKV" serve --models models --no-training --port "$port" >address.txt 2>notes.txt &
  server=$!
  for _ in {1..100}; do [[ -s address.txt ]] && break; sleep 0.05; done
  sleep 0.2
  kill -INT $server
  wait $server
done
touch done
wait $early
expect_match '^(000|200)( (000|200))*$' "$(sort -u early.txt | tr '\n' ' ' | sed 's/ $//')"
expect_match '200' "$(cat early.txt)"
