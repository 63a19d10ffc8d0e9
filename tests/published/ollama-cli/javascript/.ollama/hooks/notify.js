// Tells a chat room how much a session has used.
const fs = require('fs');
const http = require('http');

const { webhook_url: url, summary = {} } = JSON.parse(fs.readFileSync(0, 'utf8'));
const say = (notified) => console.log(JSON.stringify({ notified }));
if (!url) {
  say(false);
} else {
  const text = `session ended: ${summary.total_tokens ?? 0} tokens`;
  const request = http.request(url, { method: 'POST', headers: { 'Content-Type': 'application/json' } });
  request.on('response', (response) => response.resume().on('end', () => say(true)));
  request.on('error', () => process.exit(1));
  request.end(JSON.stringify({ text }));
}
