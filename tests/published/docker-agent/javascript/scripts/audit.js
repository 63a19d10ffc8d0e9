// A line for each tool call.
const fs = require('fs');

const { session_id: session, tool_name: tool } = JSON.parse(fs.readFileSync(0, 'utf8'));
fs.appendFileSync('audit.log', `${session} | ${tool}\n`);
console.log(JSON.stringify({ continue: true }));
