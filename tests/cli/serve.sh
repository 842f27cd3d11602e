# qkv serve: the real server on loopback, and requests that mean it no good. Each gets its answer, and the server lives.
command -v curl >/dev/null || exit 77
mkdir models
"$QKV" serve --models models --no-training >address.txt 2>notes.txt &
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
expect_match '^400 .*want is missing' "$(post api/v1/cues '{}')"
expect_match '^404 .*there is no model m1' "$(post api/v1/translate '{"model": "m1", "text": "a"}')"
expect_match '^404 .*there is no session' "$(post api/v1/map '{"session": "k1", "name": "cross", "row": [-1, 2]}')"
expect_match '^404$' "$(status --path-as-is ../../etc/passwd)"
expect_match '^404$' "$(status api/v1/nothing)"
alive

# A sender that never finishes, a listener that vanishes, and many at once.
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'POST /api/v1/cues HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Ty' "$port" >&3
timeout 1 curl -sN "${url}api/v1/events" >events.txt
expect_match 'event: models' "$(cat events.txt)"
clients=()
for _ in {1..200}; do
  curl -s -m 30 -o /dev/null -w '%{http_code}\n' "${url}health" >>many.txt &
  clients+=($!)
done
wait "${clients[@]}"
expect_match '^200$' "$(sort many.txt | uniq -c | sed -n 's/^ *200 \(200\)$/\1/p')"
alive
exec 3>&-

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
rm -rf models/small
expect_match '^410 .*is gone' "$(post api/v1/translate '{"model": "m1", "text": "the cat sleeps ."}')"
alive

kill -TERM $server
wait $server
expect_match '^130$' "$?"
