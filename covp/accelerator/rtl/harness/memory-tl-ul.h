// TileLink Uncached Lightweight (SiFive TileLink 1.8.1, chapter 6): requests on channel A, answers on D.

class Port {
public:
    explicit Port(Design &design) : design(design), memory(design.memory), top(design.top) {}

    void reset() { answers.clear(), m_a_ready = 0, m_d_valid = 0; }
    bool is_idle() { return answers.empty(); }

    void drive() {
        m_a_ready = answers.size() < MOST && !design.pause();
        bool shows = !answers.empty() && answers.front().ready <= design.now;
        m_d_valid = shows;
        if (!shows) return;
        const Answer &one = answers.front();
        put<WORD>(m_d_data, one.bytes);
        m_d_opcode = one.opcode, m_d_size = one.size, m_d_source = one.source;
        m_d_error = one.failed, m_d_denied = one.failed;
    }

    void sample() {
        if (m_d_valid && m_d_ready) answers.pop_front();
        if (m_a_valid && m_a_ready) take();
    }

private:
    static constexpr size_t MOST = 8;
    enum { PUT_FULL = 0, PUT_PARTIAL = 1, GET = 4, ACCESS_ACK = 0, ACCESS_ACK_DATA = 1 };
    struct Answer {
        uint8_t bytes[WORD];
        uint64_t ready;
        uint32_t opcode, size, source;
        bool failed;
    };

    void take() {
        uint32_t address = m_a_address, size = 1u << m_a_size, opcode = m_a_opcode;
        Answer answer{{}, design.now + design.latency + design.pause(), ACCESS_ACK, uint32_t(m_a_size),
                      uint32_t(m_a_source), false};
        if (size > WORD)
            memory.fail("TileLink: a request of %u bytes on a port of %u (6.1)", size, WORD), size = WORD;
        if (address % size)
            memory.fail("TileLink: a request of %u bytes at 0x%08x is not aligned (4.6)", size, address);
        uint32_t lane = address % WORD, word = address - lane;
        uint64_t lanes = ((size == 64 ? 0 : 1ull << size) - 1) << (lane & ~(size - 1));
        if (opcode == GET) {
            answer.opcode = ACCESS_ACK_DATA;
            uint32_t first = address & ~(size - 1);
            answer.failed = !memory.load(first, size, answer.bytes + first % WORD);
        } else if (opcode == PUT_FULL || opcode == PUT_PARTIAL) {
            uint8_t bytes[WORD];
            get<WORD>(m_a_data, bytes);
            uint64_t mask = m_a_mask & ALL_BYTES;
            if (mask & ~lanes || (opcode == PUT_FULL && mask != lanes))
                memory.fail("TileLink: a_mask 0x%llx of a put of %u bytes at 0x%08x (4.6)", (unsigned long long)mask,
                            size, address);
            answer.failed = !memory.store(word, WORD, bytes, mask & lanes);
        } else {
            memory.fail("TileLink: a_opcode %u at 0x%08x is none of UL (6.2)", opcode, address);
        }
        answers.push_back(answer);
    }

    Design &design;
    Memory &memory;
    Vcovp_unit &top;
    std::deque<Answer> answers;
};
