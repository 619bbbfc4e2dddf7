// The calculator of the page about sizing. `make sizing` writes the costs, in bytes beside what the user stores.
const sizingCosts = /* costs */ {
  "string": {
    "packed": {
      "key": 31,
      "element": 0,
      "byte": 1.07
    },
    "table": {
      "key": 31,
      "element": 0,
      "byte": 1.07
    }
  },
  "expiring string": {
    "packed": {
      "key": 35,
      "element": 0,
      "byte": 1.1
    },
    "table": {
      "key": 35,
      "element": 0,
      "byte": 1.1
    }
  },
  "hash": {
    "packed": {
      "key": 15,
      "element": 11.1,
      "byte": 0.98
    },
    "table": {
      "key": 919,
      "element": 32.1,
      "byte": 0.76
    }
  },
  "list": {
    "packed": {
      "key": 101,
      "element": 0,
      "byte": 1.13
    },
    "table": {
      "key": 4822,
      "element": 0,
      "byte": 1.03
    }
  },
  "set": {
    "packed": {
      "key": 30,
      "element": 2.4,
      "byte": 1.29
    },
    "table": {
      "key": 0,
      "element": 17.7,
      "byte": 1.23
    }
  },
  "zset": {
    "packed": {
      "key": 26,
      "element": 4.9,
      "byte": 1.25
    },
    "table": {
      "key": 1686,
      "element": 47.2,
      "byte": 0.83
    }
  },
  "stream": {
    "packed": {
      "key": 288,
      "element": 0,
      "byte": 1.14
    },
    "table": {
      "key": 1262,
      "element": 1.8,
      "byte": 1.08
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
