// A webhook before inference: allows, denies, asks, or takes a password out. Its port is its first line.
const http = require('http');

function judge({ messages }) {
  const last = messages[messages.length - 1];
  const text = last.content;
  if (text.includes('launch codes')) {
    return { permission: 'deny', user_message: 'that is secret', agent_message: 'policy 7' };
  }
  if (text.includes('transfer')) {
    return { permission: 'ask', user_message: 'a person has to agree' };
  }
  if (text.includes('hunter2')) {
    last.content = text.replaceAll('hunter2', '***');
    return { permission: 'modify', messages };
  }
  return { permission: 'allow' };
}

const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) {
    body += chunk;
  }
  const event = JSON.parse(body);
  const isOurs = event.event === request.headers['x-ollama-hook-event'];
  const isKnown = request.headers.authorization === 'Bearer t0ken';
  response.writeHead(isOurs && isKnown ? 200 : 401, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(judge(event)));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
