    // memory: TileLink-UL (TileLink 1.8.1, chapter 6)
    output            m_a_valid,
    input             m_a_ready,
    output      [2:0] m_a_opcode,
    output      [1:0] m_a_size,
    output     [31:0] m_a_address,
    output      [3:0] m_a_mask,
    output     [31:0] m_a_data,
    input             m_d_valid,
    output            m_d_ready,
    input      [31:0] m_d_data,
    input             m_d_error
    // end of ports
    assign m_a_valid = req;
    assign m_a_opcode = we ? 3'd1 : 3'd4;  // PutPartialData, Get
    assign m_a_size = 2'd2;
    assign m_a_address = addr;
    assign m_a_mask = we ? be : 4'b1111;
    assign m_a_data = wdata;
    assign m_d_ready = 1'b1;
    assign gnt = m_a_ready;
    assign rvalid = m_d_valid;
    assign rdata = m_d_data;
    assign err = m_d_error;
