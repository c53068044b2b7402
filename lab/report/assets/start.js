'use strict';
Q.unpack().then(data => { Q[data.value('kind')](data); Q.ready(); }).catch(Q.failed);
