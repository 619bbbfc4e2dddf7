// The calculator of the page about sizing. `make sizing` writes the costs, in bytes beside what the user stores.
const sizingCosts = /* costs */ {
  "string": {
    "packed": {
      "key": 35,
      "element": 0,
      "byte": 1.15
    },
    "table": {
      "key": 35,
      "element": 0,
      "byte": 1.15
    }
  },
  "expiring string": {
    "packed": {
      "key": 38,
      "element": 0,
      "byte": 1.2
    },
    "table": {
      "key": 38,
      "element": 0,
      "byte": 1.2
    }
  },
  "hash": {
    "packed": {
      "key": 23,
      "element": 9.7,
      "byte": 1.17
    },
    "table": {
      "key": 2038,
      "element": 32.9,
      "byte": 0.92
    }
  },
  "list": {
    "packed": {
      "key": 105,
      "element": 0.4,
      "byte": 1.25
    },
    "table": {
      "key": 6555,
      "element": 1.4,
      "byte": 1.09
    }
  },
  "set": {
    "packed": {
      "key": 25,
      "element": 4.2,
      "byte": 1.32
    },
    "table": {
      "key": 1928,
      "element": 21.1,
      "byte": 1.27
    }
  },
  "zset": {
    "packed": {
      "key": 31,
      "element": 7.4,
      "byte": 1.26
    },
    "table": {
      "key": 2885,
      "element": 51.2,
      "byte": 0.91
    }
  },
  "stream": {
    "packed": {
      "key": 299,
      "element": 0.1,
      "byte": 1.2
    },
    "table": {
      "key": 2320,
      "element": 3.1,
      "byte": 1.18
    }
  }
};

// Bytes that so many keys of a kind take. A collection is packed up to 128 elements (a hash up to 512) of 64 bytes.
function sizingBytes(kind, keys, name, elements, size) {
  const isSmall = kind === "list" || kind === "stream" || size <= 64;
  const isPacked = isSmall && elements <= (kind === "hash" ? 512 : 128);
  const costs = sizingCosts[kind][isPacked ? "packed" : "table"];
  return keys * (name + costs.key + elements * (size * costs.byte + costs.element));
}

function sizingShown(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const unit = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${(bytes / 1000 ** unit).toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

function sizingCalculator(place) {
  const fields = [
    ["keys", "keys", 1000000],
    ["name", "bytes of a name", 16],
    ["elements", "elements of a key", 1],
    ["size", "bytes of an element", 100],
  ];
  const kinds = Object.keys(sizingCosts).map((kind) => `<option>${kind}</option>`).join("");
  const inputs = fields.map(
    ([id, label, value]) => `<tr><td><label for="sizing-${id}">${label}</label></td>
      <td><input id="sizing-${id}" type="number" min="0" value="${value}"></td></tr>`,
  );
  place.innerHTML = `<table><tr><td><label for="sizing-kind">kind</label></td>
    <td><select id="sizing-kind">${kinds}</select></td></tr>${inputs.join("")}
    <tr><td>used_memory</td><td><output id="sizing-data"></output></td></tr>
    <tr><td>to plan for</td><td><output id="sizing-plan"></output></td></tr></table>`;
  const input = (id) => place.querySelector(`#sizing-${id}`);
  const show = () => {
    const [keys, name, elements, size] = fields.map(([id]) => Number(input(id).value));
    const kind = input("kind").value;
    const bytes = sizingBytes(kind, keys, name, kind.endsWith("string") ? 1 : elements, size);
    input("data").textContent = sizingShown(bytes);
    input("plan").textContent = sizingShown(bytes * 1.25 + 100e6);
  };
  place.addEventListener("input", show);
  show();
}

if (typeof document !== "undefined") {
  const place = document.getElementById("sizing");
  if (place) sizingCalculator(place);
}
