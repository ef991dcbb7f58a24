// The state of a design in memory, by Verilator's own means.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>

#include "verilated_save.h"

class Saving : public VerilatedSerialize {
public:
    explicit Saving(std::string &data) : data(data) { m_isOpen = true; }
    void flush() override {
        data.append(reinterpret_cast<char *>(m_bufp), m_cp - m_bufp);
        m_cp = m_bufp;
    }

private:
    std::string &data;
};

class Loading : public VerilatedDeserialize {
public:
    Loading(const char *data, size_t size) : data(data), left(size) {
        m_isOpen = true;
        m_cp = m_endp = m_bufp;
        fill();
    }

protected:
    void fill() override {
        size_t kept = m_endp - m_cp;
        memmove(m_bufp, m_cp, kept);
        size_t more = std::min(left, bufferSize() - kept);
        memcpy(m_bufp + kept, data, more);
        data += more, left -= more;
        m_cp = m_bufp, m_endp = m_bufp + kept + more;
    }

private:
    const char *data;
    size_t left;
};

template <typename Model>
void save_model(Model &top, std::string &data) {
    data.clear();
    Saving stream(data);
    stream << top;
    stream.flush();
}

template <typename Model>
void load_model(Model &top, const char *data, size_t size) {
    Loading stream(data, size);
    stream >> top;
}
