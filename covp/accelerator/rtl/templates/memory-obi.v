    // memory: OBI 1.2
    output            m_req,
    input             m_gnt,
    output     [31:0] m_addr,
    output            m_we,
    output      [3:0] m_be,
    output     [31:0] m_wdata,
    input             m_rvalid,
    input      [31:0] m_rdata,
    input             m_err
    // end of ports
    assign m_req = req;
    assign m_addr = addr;
    assign m_we = we;
    assign m_be = be;
    assign m_wdata = wdata;
    assign gnt = m_gnt;
    assign rvalid = m_rvalid;
    assign rdata = m_rdata;
    assign err = m_err;
