require('fs').readFileSync(0);
console.log(JSON.stringify({ allow: true, message: 'OK' }));
