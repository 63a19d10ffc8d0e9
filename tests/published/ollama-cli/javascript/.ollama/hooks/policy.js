// Refuses commands that destroy what nobody can bring back.
const fs = require('fs');

const forbidden = ['rm -rf', 'dd if=', 'mkfs'];
const { tool, command = '' } = JSON.parse(fs.readFileSync(0, 'utf8'));
const isForbidden = tool === 'bash' && forbidden.some((word) => command.includes(word));
console.log(
  JSON.stringify(
    isForbidden
      ? { permissionDecision: 'deny', reason: 'this command destroys data' }
      : { permissionDecision: 'allow' },
  ),
);
