//! A policy in Rust: a draw in which each replica's chance is in proportion to its weight.
//!
//! `weighted_draw seed=7`. No allocator and no standard library: the fleet has a fixed bound, and a
//! guest that never allocates never grows.
//!
//! Everything that a later answer depends on is in `Block`. What follows from the candidates (rows,
//! which are sorted by identity for look-ups, and the sum of weights) is built anew from them.
#![no_std]
#![no_main]

mod abi;
use abi::*;
use core::ptr::addr_of;

const MOST: usize = 4096;
const MAGIC: u64 = 0x7764_7201;
const HEAD: usize = 5 * 8;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

/// What a host copies: five words, and one status for each candidate.
#[repr(C)]
#[derive(Clone, Copy)]
struct Block {
    magic: u64,
    config: u64,
    set: u64,
    count: u64,
    random: u64,
    status: [u64; MOST],
}

struct Guest {
    configured: bool,
    block: Block,
    ids: [u64; MOST],
    weights: [u32; MOST],
    by_id: [u16; MOST], // slots, sorted by identity
    spare: [u16; MOST],
    sum: u64, // of the weights of the eligible
    text: [u8; 128],
    said: usize,
    decision: [u8; DECISION_SIZE],
    arena: [u8; MOST * CANDIDATE_SIZE],
}

const FRESH: Block = Block { magic: 0, config: 0, set: 0, count: 0, random: 0, status: [0; MOST] };

static mut GUEST: Guest = Guest {
    configured: false,
    block: FRESH,
    ids: [0; MOST],
    weights: [0; MOST],
    by_id: [0; MOST],
    spare: [0; MOST],
    sum: 0,
    text: [0; 128],
    said: 0,
    decision: [0; DECISION_SIZE],
    arena: [0; MOST * CANDIDATE_SIZE],
};

/// A host makes one call at a time, so there is one borrower.
fn guest() -> &'static mut Guest {
    unsafe { &mut *core::ptr::addr_of_mut!(GUEST) }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl Guest {
    fn say(&mut self, code: i32, parts: &[&[u8]]) -> i32 {
        self.said = 0;
        for b in parts.iter().flat_map(|p| p.iter()).take(self.text.len()) {
            self.text[self.said] = *b;
            self.said += 1;
        }
        code
    }

    fn unknown(&mut self) -> i32 {
        self.say(E_UNKNOWN_ENDPOINT, &[b"this replica is not in the fleet"])
    }

    fn u64_at(&self, at: usize) -> u64 {
        let mut b = [0; 8];
        b.copy_from_slice(&self.arena[at..at + 8]);
        u64::from_le_bytes(b)
    }

    fn count(&self) -> usize {
        self.block.count as usize
    }

    fn slot_of(&self, id: u64) -> Option<usize> {
        let order = &self.by_id[..self.count()];
        let at = order.binary_search_by_key(&id, |s| self.ids[*s as usize]);
        at.ok().map(|i| order[i] as usize)
    }

    fn add_up(&mut self) {
        let n = self.count();
        self.sum = (0..n).filter(|i| self.eligible(*i)).map(|i| self.weights[i] as u64).sum();
    }

    fn eligible(&self, slot: usize) -> bool {
        self.block.status[slot] == STATUS_READY as u64
    }

    /// A number below n, from the generator in the block; n is far below 2^64, so the bias is nothing.
    fn draw(&mut self, n: u64) -> u64 {
        self.block.random = self.block.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.block.random) as u128 * n as u128 >> 64) as u64
    }

    fn configure(&mut self, spec: core::ops::Range<usize>, salt: u64) -> i32 {
        const REASON: &[u8] = b"weighted_draw: want weighted_draw, or weighted_draw seed=N with N below 2^64";
        let line = &self.arena[spec];
        let rest = match line.strip_prefix(b"weighted_draw") {
            Some(rest) => rest,
            None => return self.say(E_BAD_CONFIG, &[REASON]),
        };
        let digits = if rest.is_empty() { &b"0"[..] } else { rest.strip_prefix(b" seed=").unwrap_or(b"") };
        let mut seed = if digits.is_empty() { None } else { Some(0u64) };
        for d in digits {
            let digit = d.wrapping_sub(b'0');
            seed = seed.filter(|_| digit < 10).and_then(|s| s.checked_mul(10)).and_then(|s| s.checked_add(digit as u64));
        }
        let seed = match seed {
            Some(seed) => seed,
            None => return self.say(E_BAD_CONFIG, &[REASON]),
        };
        self.configured = true;
        self.block.magic = MAGIC;
        self.block.config = mix(seed ^ mix(salt));
        self.block.random = if salt == 0 { seed } else { self.block.config };
        self.block.count = 0;
        self.sum = 0;
        let (mut number, mut at, mut left) = ([0u8; 20], 20, seed);
        while at == 20 || left > 0 {
            at -= 1;
            number[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        self.say(0, &[b"weighted_draw seed=", &number[at..]])
    }

    /// The fleet is found good before anything changes.
    fn candidates(&mut self, n: usize) -> i32 {
        for i in 0..n {
            self.spare[i] = i as u16;
            if self.arena[i * CANDIDATE_SIZE + CANDIDATE_STATUS] > STATUS_UNAVAILABLE as u8 {
                return self.say(E_BAD_CONFIG, &[b"a candidate has a status that is none"]);
            }
        }
        let arena = addr_of!(self.arena) as *const u8;
        let id = |i: u16| unsafe { (arena.add(i as usize * CANDIDATE_SIZE + CANDIDATE_ID) as *const u64).read_unaligned() };
        self.spare[..n].sort_unstable_by_key(|i| id(*i));
        if self.spare[..n].windows(2).any(|w| id(w[0]) == id(w[1])) {
            return self.say(E_DUPLICATE_ENDPOINT, &[b"an identity stands twice in the fleet"]);
        }
        self.by_id[..n].copy_from_slice(&self.spare[..n]);
        self.block.count = n as u64;
        self.block.set = 0;
        for i in 0..n {
            let at = i * CANDIDATE_SIZE;
            self.ids[i] = self.u64_at(at + CANDIDATE_ID);
            self.weights[i] = (self.u64_at(at + CANDIDATE_WEIGHT) as u32).max(1);
            self.block.status[i] = self.arena[at + CANDIDATE_STATUS] as u64;
            self.block.set = mix(self.block.set ^ self.ids[i]).wrapping_add(self.weights[i] as u64);
        }
        self.add_up();
        0
    }

    fn decide(&mut self, tried: usize) -> i32 {
        if self.count() == 0 {
            return self.say(E_NO_CANDIDATES, &[b"the fleet is empty"]);
        }
        let mut avoid = [usize::MAX; MAX_TRIED];
        let mut sum = self.sum;
        for t in 0..tried {
            if let Some(slot) = self.slot_of(self.u64_at(8 * t)) {
                if self.eligible(slot) && !avoid.contains(&slot) {
                    avoid[t] = slot;
                    sum -= self.weights[slot] as u64;
                }
            }
        }
        if sum == 0 {
            return self.say(E_NONE_ELIGIBLE, &[b"no replica is open to this query"]);
        }
        let mut ticket = self.draw(sum);
        for slot in 0..self.count() {
            if !self.eligible(slot) || tried > 0 && avoid.contains(&slot) {
                continue;
            }
            let weight = self.weights[slot] as u64;
            if ticket < weight {
                self.decision = [0; DECISION_SIZE];
                self.decision[DECISION_INDEX..DECISION_INDEX + 4].copy_from_slice(&(slot as u32).to_le_bytes());
                self.decision[DECISION_THRESHOLD..DECISION_THRESHOLD + 4].fill(0xff);
                self.decision[DECISION_REGIME] = REGIME_DIRECT as u8;
                return slot as i32;
            }
            ticket -= weight;
        }
        self.say(E_INTERNAL, &[b"the ticket fell on nobody"])
    }

    fn block_bytes(&self) -> usize {
        HEAD + 8 * self.count()
    }

    /// Words that decide what may be restored here: all of the head but the generator, and the statuses.
    fn restore(&mut self, bytes: usize) -> i32 {
        if bytes != self.block_bytes() {
            return self.say(E_BAD_BLOCK, &[b"the block has another length"]);
        }
        let head = [self.block.magic, self.block.config, self.block.set, self.block.count];
        let same = (0..4).all(|i| self.u64_at(8 * i) == head[i])
            && (0..self.count()).all(|i| self.u64_at(HEAD + 8 * i) == self.block.status[i]);
        if !same {
            return self.say(E_BAD_BLOCK, &[b"the block is of another spec, fleet or status"]);
        }
        self.block.random = self.u64_at(32);
        0
    }

    fn tell(&mut self, text: &[u8]) -> i32 {
        self.arena[..text.len()].copy_from_slice(text);
        text.len() as i32
    }
}

#[no_mangle]
pub extern "C" fn lb_abi_version() -> i32 {
    VERSION
}

#[no_mangle]
pub extern "C" fn lb_arena(bytes: i32) -> i32 {
    let g = guest();
    if bytes < 0 || bytes as usize > g.arena.len() {
        return 0;
    }
    g.arena.as_ptr() as i32
}

#[no_mangle]
pub extern "C" fn lb_configure(bytes: i32, salt: i64) -> i32 {
    if bytes < 0 || bytes as usize > MAX_SPEC {
        return guest().say(E_BAD_CONFIG, &[b"weighted_draw: the spec is too long"]);
    }
    guest().configure(0..bytes as usize, salt as u64)
}

#[no_mangle]
pub extern "C" fn lb_candidates(_now: i64, count: i32) -> i32 {
    if !guest().configured || count < 0 || count as usize > MOST {
        return guest().say(E_CAPACITY, &[b"at most 4096 candidates, after lb_configure"]);
    }
    guest().candidates(count as usize)
}

#[no_mangle]
pub extern "C" fn lb_status(_now: i64, id: i64, status: i32) -> i32 {
    let g = guest();
    match g.slot_of(id as u64) {
        None => g.unknown(),
        Some(_) if status as u32 > STATUS_UNAVAILABLE as u32 => g.say(E_BAD_CONFIG, &[b"no such status"]),
        Some(slot) => {
            g.block.status[slot] = status as u64;
            g.add_up();
            0
        }
    }
}

#[no_mangle]
pub extern "C" fn lb_decide(_now: i64, _key: i64, tried: i32) -> i32 {
    if tried as u32 as usize > MAX_TRIED {
        return guest().say(E_CAPACITY, &[b"too many replicas tried"]);
    }
    guest().decide(tried as usize)
}

#[no_mangle]
pub extern "C" fn lb_decision() -> i32 {
    guest().decision.as_ptr() as i32
}

/// This policy needs nothing of replicas but their names: what is told of one is only looked up.
fn heard(id: i64) -> i32 {
    match guest().slot_of(id as u64) {
        None => guest().unknown(),
        Some(_) => 0,
    }
}

#[no_mangle]
pub extern "C" fn lb_report(_now: i64, id: i64, _outcome: i32, _latency: i64) -> i32 {
    heard(id)
}

#[no_mangle]
pub extern "C" fn lb_record(_now: i64, id: i64, _rif: i32, _latency: i64, _asked: i64) -> i32 {
    heard(id)
}

#[no_mangle]
pub extern "C" fn lb_forget(_now: i64, id: i64, _asked: i64) -> i32 {
    heard(id)
}

#[no_mangle]
pub extern "C" fn lb_probes(_now: i64) -> i32 {
    0
}

#[no_mangle]
pub extern "C" fn lb_entries(_now: i64) -> i32 {
    0
}

#[no_mangle]
pub extern "C" fn lb_inspect() -> i32 {
    guest().arena[..INSPECT_SIZE].fill(0);
    0
}

#[no_mangle]
pub extern "C" fn lb_block() -> i64 {
    let g = guest();
    (addr_of!(g.block) as usize as i64) << 32 | g.block_bytes() as i64
}

#[no_mangle]
pub extern "C" fn lb_restore(bytes: i32) -> i32 {
    guest().restore(bytes as u32 as usize)
}

#[no_mangle]
pub extern "C" fn lb_text() -> i32 {
    let (text, said) = (guest().text, guest().said);
    guest().tell(&text[..said])
}

#[no_mangle]
pub extern "C" fn lb_policies() -> i32 {
    guest().tell(b"weighted_draw")
}
