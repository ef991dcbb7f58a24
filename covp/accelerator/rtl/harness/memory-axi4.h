// AXI4 (Arm IHI 0022): bursts, several requests under way, answers in their order, or, where the memory is busy by
// chance, in any that their ids allow. AXI4-Lite is AXI4 without bursts.

class Port {
public:
    explicit Port(Design &design) : design(design), memory(design.memory), top(design.top) {}

    void reset() {
        reads.clear(), writes.clear(), data.clear(), answers.clear();
        read_address.forget(), write_address.forget(), write_data.forget();
        m_arready = 0, m_rvalid = 0, m_awready = 0, m_wready = 0, m_bvalid = 0;
    }

    bool is_idle() { return reads.empty() && writes.empty() && data.empty() && answers.empty(); }

    void drive() {
        m_arready = reads.size() < MOST && !design.pause();
        m_awready = writes.size() < MOST && !design.pause();
        m_wready = data.size() < MOST_BEATS && !design.pause();
        if (!reads.empty() && !reads.front().has_begun) choose();
        bool shows = !reads.empty() && reads.front().ready <= design.now;
        m_rvalid = shows;
        if (shows) {
            Burst &burst = reads.front();
            burst.has_begun = true;
            if (!burst.is_loaded) {
                burst.is_loaded = true;
                burst.failed = !memory.load(burst.lane(), burst.bytes(), beat_at(burst));
            }
            put<WORD>(m_rdata, beat);
            m_rlast = burst.left == 1, m_rid = burst.id, m_rresp = burst.failed ? SLVERR : 0;
        }
        bool answered = !answers.empty() && answers.front().ready <= design.now;
        m_bvalid = answered;
        if (answered) m_bid = answers.front().id, m_bresp = answers.front().failed ? SLVERR : 0;
    }

    void sample() {
        read_address.check(memory, "AXI4: AR", m_arvalid, m_arready, [this] {
            return std::array<uint64_t, 5>{m_araddr, m_arlen, m_arsize, m_arburst, m_arid};
        });
        write_address.check(memory, "AXI4: AW", m_awvalid, m_awready, [this] {
            return std::array<uint64_t, 5>{m_awaddr, m_awlen, m_awsize, m_awburst, m_awid};
        });
        write_data.check(memory, "AXI4: W", m_wvalid, m_wready, [this] {
            uint8_t bytes[WORD];
            get<WORD>(m_wdata, bytes);
            return std::array<uint64_t, 3>{m_wstrb, m_wlast, hash<WORD>(bytes, m_wstrb & ALL_BYTES)};
        });
        if (m_bvalid && m_bready) answers.pop_front();
        if (m_rvalid && m_rready) {
            reads.front().ready = design.now + 1 + design.pause();
            if (!reads.front().step()) reads.pop_front();
        }
        if (m_arvalid && m_arready)
            reads.push_back(begin("read", m_araddr, m_arlen, m_arsize, m_arburst, m_arid));
        if (m_awvalid && m_awready)
            writes.push_back(begin("write", m_awaddr, m_awlen, m_awsize, m_awburst, m_awid));
        if (m_wvalid && m_wready) {
            Beat one{{}, m_wstrb & ALL_BYTES, !!m_wlast};
            get<WORD>(m_wdata, one.bytes);
            data.push_back(one);
        }
        while (!writes.empty() && !data.empty()) store();
    }

private:
    static constexpr size_t MOST = 8, MOST_BEATS = 256;
    static constexpr uint32_t SLVERR = 2, WIDTH = WORD;
    enum { FIXED, INCR, WRAP };

    struct Burst {
        uint32_t address, left, size, kind, id, first, total;
        uint64_t ready;
        bool is_loaded, failed, has_begun;

        uint32_t bytes() const { return 1u << size; }
        uint32_t lane() const { return address & ~(bytes() - 1); }  // of the whole transfer
        // Go to the next beat; false: this was the last one.
        bool step() {
            is_loaded = false;
            if (kind != FIXED) address = lane() + bytes();
            if (kind == WRAP && address == first + total) address = first;
            return --left;
        }
    };
    struct Beat {
        uint8_t bytes[WORD];
        uint64_t strobes;
        bool is_last;
    };

    Burst begin(const char *what, uint32_t address, uint32_t length, uint32_t size, uint32_t kind, uint32_t id) {
        uint32_t total = (length + 1) << size;
        uint32_t last = (address & ~((1u << size) - 1)) + total - 1;
        if ((1u << size) > WIDTH)
            memory.fail("AXI4: a %s of %u bytes a beat on a port of %u (A3.4.1)", what, 1u << size, WIDTH);
        else if (kind == INCR && address >> 12 != last >> 12)
            memory.fail("AXI4: a %s burst of %u beats at 0x%08x crosses a border of 4 KiB (A3.4.1)", what,
                        length + 1, address);
        size = size > WIDTH_LOG ? WIDTH_LOG : size;
        uint32_t first = kind == WRAP ? address & ~(total - 1) : address;
        return {address, length + 1, size, kind, id, first, total,
                design.now + design.latency + design.pause(), false, false, false};
    }

    // The read that is answered next: any before which no other one has its id (A5.3.1).
    void choose() {
        if (!design.stalls || reads.size() < 2) return;
        size_t chosen = design.pause() % reads.size();
        for (size_t i = 0; i < chosen; i++)
            if (reads[i].id == reads[chosen].id) return;
        Burst burst = reads[chosen];
        if (burst.ready > design.now) return;
        reads.erase(reads.begin() + chosen);
        reads.push_front(burst);
    }

    // Where the bytes of a beat begin among the lanes of the port.
    uint8_t *beat_at(const Burst &burst) {
        memset(beat, 0, sizeof beat);
        return beat + burst.lane() % WIDTH;
    }

    void store() {
        Burst &burst = writes.front();
        Beat one = data.front();
        data.pop_front();
        uint32_t base = burst.address & ~(WIDTH - 1);
        uint64_t lanes = ((burst.bytes() == 64 ? 0 : 1ull << burst.bytes()) - 1) << (burst.lane() - base);
        if (one.strobes & ~lanes)
            memory.fail("AXI4: WSTRB 0x%llx at 0x%08x has lanes beyond the transfer's (A3.4.3)",
                        (unsigned long long)one.strobes, burst.address);
        burst.failed |= !memory.store(base, WIDTH, one.bytes, one.strobes & lanes);
        if (one.is_last != (burst.left == 1))
            memory.fail("AXI4: WLAST is %d in a beat of the burst at 0x%08x that has %u more (A3.2.2)", one.is_last,
                        burst.first, burst.left - 1);
        if (burst.step()) return;
        burst.ready = design.now + design.latency + design.pause();
        answers.push_back(burst);
        writes.pop_front();
    }

    static constexpr uint32_t WIDTH_LOG = __builtin_ctz(WORD);
    Design &design;
    Memory &memory;
    Vcovp_unit &top;
    std::deque<Burst> reads, writes, answers;
    std::deque<Beat> data;
    Stable<5> read_address{"A3.2.1"}, write_address{"A3.2.1"};
    Stable<3> write_data{"A3.2.1"};
    uint8_t beat[WORD];
};
