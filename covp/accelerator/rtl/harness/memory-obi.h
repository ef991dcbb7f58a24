// OBI 1.2 (OpenHW): requests are granted at once, answers come in their order.

class Port {
public:
    explicit Port(Design &design) : design(design), memory(design.memory), top(design.top) {}

    void reset() { answers.clear(), request.forget(), m_gnt = 0, m_rvalid = 0; }
    bool is_idle() { return answers.empty(); }

    void drive() {
        m_gnt = !design.pause();
        bool shows = !answers.empty() && answers.front().ready <= design.now;
        m_rvalid = shows;
        if (shows) {
            put<WORD>(m_rdata, answers.front().bytes);
            m_err = answers.front().failed;
        }
    }

    void sample() {
        if (m_rvalid && m_rready) answers.pop_front();
        request.check(memory, "OBI: a request", m_req, m_gnt, [this] {
            uint8_t stored[WORD];
            get<WORD>(m_wdata, stored);
            uint64_t bytes = m_we ? m_be & ALL_BYTES : 0;
            return std::array<uint64_t, 4>{m_addr, m_we, bytes, hash<WORD>(stored, bytes)};
        });
        if (!m_req || !m_gnt) return;
        Answer answer{{}, design.now + design.latency + design.pause(), false};
        uint32_t word = m_addr & ~(WORD - 1);
        if (m_we) {
            uint8_t bytes[WORD];
            get<WORD>(m_wdata, bytes);
            answer.failed = !memory.store(word, WORD, bytes, m_be & ALL_BYTES);
        } else {
            answer.failed = !memory.load(word, WORD, answer.bytes);
        }
        answers.push_back(answer);
    }

private:
    struct Answer {
        uint8_t bytes[WORD];
        uint64_t ready;
        bool failed;
    };
    Design &design;
    Memory &memory;
    Vcovp_unit &top;
    std::deque<Answer> answers;
    Stable<4> request{"OBI 1.2, address phase"};
};
