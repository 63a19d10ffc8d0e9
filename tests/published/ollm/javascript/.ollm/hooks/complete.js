// Checks its input, judges it, and says how.
const fs = require('fs');

function judge({ context, metadata }) {
  const by = `${metadata.hookName} ${metadata.hookVersion}`;
  const isSystems = JSON.stringify(context.args ?? {}).includes('/etc/');
  const message = isSystems ? 'system files are not for tools' : 'looked at';
  return { allow: !isSystems, message, metadata: { by } };
}

try {
  const input = JSON.parse(fs.readFileSync(0, 'utf-8'));
  if (!input.event || !input.context) {
    throw new Error('no event or no context');
  }
  console.log(JSON.stringify(judge(input)));
} catch (error) {
  console.log(JSON.stringify({ allow: false, message: `Error: ${error.message}`, metadata: { error: error.name } }));
  process.exit(1);
}
