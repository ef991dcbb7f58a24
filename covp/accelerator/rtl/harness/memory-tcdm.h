// HWPE's memory ports (PULP): words of 32 bits side by side, each with an address, granted together and answered by
// data after the latency; `wen` is low for a store.

class Port {
public:
    explicit Port(Design &design) : design(design), memory(design.memory), top(design.top) {}

    void reset() { answers.clear(), request.forget(), shows = false, m_gnt = 0, m_r_valid = 0; }
    bool is_idle() { return answers.empty(); }

    void drive() {
        grants = !design.pause();
        m_gnt = grants ? ALL : 0;
        shows = !answers.empty() && answers.front().ready <= design.now;
        m_r_valid = shows ? answers.front().ports : 0;
        if (shows) put<WORD>(m_r_data, answers.front().words);
    }

    void sample() {
        if (shows) answers.pop_front();
        request.check(memory, "TCDM: a request", m_req, grants, [this] {
            uint8_t places[WORD], stored[WORD];
            get<WORD>(m_add, places), get<WORD>(m_data, stored);
            return std::array<uint64_t, 4>{hash<WORD>(places, ~0ull), m_wen, m_be, hash<WORD>(stored, m_wen ? 0 : m_be)};
        });
        if (!m_req || !grants) return;
        Answer answer{{}, design.now + design.latency + design.pause(), uint64_t(m_req)};
        uint32_t places[PORTS], stored[PORTS];
        get<WORD>(m_add, places), get<WORD>(m_data, stored);
        for (uint32_t port = 0; port < PORTS; port++) {
            if (!(m_req >> port & 1)) continue;
            uint32_t place = places[port];
            if (place % 4) memory.fail("TCDM: a request at 0x%08x is not aligned", place);
            uint8_t bytes[4];
            memcpy(bytes, &stored[port], 4);
            if (m_wen >> port & 1)
                memory.load(place & ~3u, 4, reinterpret_cast<uint8_t *>(&answer.words[port]));
            else
                memory.store(place & ~3u, 4, bytes, m_be >> 4 * port & 0xF);
        }
        answers.push_back(answer);
    }

private:
    static constexpr uint32_t PORTS = WORD / 4, ALL = (1u << PORTS) - 1;
    struct Answer {
        uint32_t words[PORTS];
        uint64_t ready, ports;
    };
    Design &design;
    Memory &memory;
    Vcovp_unit &top;
    std::deque<Answer> answers;
    bool grants = false, shows = false;
    Stable<4> request{"HWPE, memory ports"};
};
