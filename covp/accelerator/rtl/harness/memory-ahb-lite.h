// AHB-Lite (Arm IHI 0033): the address of a transfer in one cycle, its data in those after it, until HREADY.

class Port {
public:
    explicit Port(Design &design) : design(design), memory(design.memory), top(design.top) {}

    void reset() { busy = false, next.forget(); }
    bool is_idle() { return !busy; }

    void drive() {
        m_hready = !busy || !left;
        m_hresp = is_error = busy && failed && left <= 1;  // an error takes two cycles (5.1.3)
        if (busy && !writes && !left) {
            memset(lanes, 0, sizeof lanes);
            memory.load(address, size, lanes + address % WIDTH);
            put<WORD>(m_hrdata, lanes);
        }
    }

    void sample() {
        next.check(memory, "AHB: the transfer", m_htrans & 2, m_hready,
                   [this] { return std::array<uint64_t, 3>{m_haddr, m_hwrite, m_hsize}; });
        if (is_error) next.forget();  // an error ends what follows (3.6.1)
        if (busy && left) {
            left--;
            return;
        }
        if (busy && writes) {
            get<WORD>(m_hwdata, lanes);
            memory.store(address, size, lanes + address % WIDTH, ~0ull);
        }
        busy = m_htrans & 2;
        if (!busy) return;
        address = m_haddr, size = 1u << m_hsize, writes = m_hwrite;
        if (size > WIDTH) memory.fail("AHB: a transfer of %u bytes on a port of %u (3.4)", size, WIDTH), size = WIDTH;
        if (address % size) {
            memory.fail("AHB: a transfer of %u bytes at 0x%08x is not aligned (3.4)", size, address);
            address -= address % size;
        }
        if ((m_htrans & 1) && address % 1024 == 0)
            memory.fail("AHB: a burst crosses a border of 1 KiB at 0x%08x (3.5)", address);
        failed = !memory.has(address, size, writes);
        left = design.latency - 1 + design.pause() + failed;
    }

private:
    static constexpr uint32_t WIDTH = WORD;
    Design &design;
    Memory &memory;
    Vcovp_unit &top;
    bool busy = false, writes = false, failed = false, is_error = false;
    uint32_t address = 0, size = 0, left = 0;
    uint8_t lanes[WORD];
    Stable<3> next{"3.6"};
};
