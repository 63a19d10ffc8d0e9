// Refuses what should not be run, by a verdict and by its exit code.
const { tool_input: input = {} } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const command = input.cmd ?? '';
if (command.includes('sudo')) {
  console.error('sudo is not for agents');
  process.exit(2);
}
const blocked = { decision: 'block', reason: 'this removes everything' };
console.log(JSON.stringify(command.includes('rm -rf /') ? blocked : {}));
