    // memory: a port of 32 bits as HWPE's have it (TCDM), which knows no errors
    output            m_req,
    input             m_gnt,
    output     [31:0] m_add,
    output            m_wen,
    output      [3:0] m_be,
    output     [31:0] m_data,
    input             m_r_valid,
    input      [31:0] m_r_data
    // end of ports
    assign m_req = req;
    assign m_add = addr;
    assign m_wen = !we;
    assign m_be = be;
    assign m_data = wdata;
    assign gnt = m_gnt;
    assign rvalid = m_r_valid;
    assign rdata = m_r_data;
    assign err = 1'b0;
