// Keeps every tool call that was made, a line each.
const fs = require('fs');
const os = require('os');
const path = require('path');

const payload = JSON.parse(fs.readFileSync(0, 'utf8'));
const folder = path.join(os.homedir(), '.ollama');
fs.mkdirSync(folder, { recursive: true });
const { OLLAMA_PROJECT_DIR: project, OLLAMA_SESSION_ID: session } = process.env;
fs.appendFileSync(path.join(folder, 'tool_logs.jsonl'), JSON.stringify({ ...payload, project, session }) + '\n');
console.log(JSON.stringify({ logged: true }));
