    // memory: AHB-Lite (Arm IHI 0033), single transfers
    output     [31:0] m_haddr,
    output      [1:0] m_htrans,
    output            m_hwrite,
    output      [2:0] m_hsize,
    output reg [31:0] m_hwdata,
    input      [31:0] m_hrdata,
    input             m_hready,
    input             m_hresp
    // end of ports
    reg transfers;  // a transfer is in its data phase
    // one byte, two, or the word, at the first of them
    wire [1:0] place = be[0] ? 2'd0 : be[1] ? 2'd1 : be[2] ? 2'd2 : 2'd3;
    wire [2:0] bytes = {2'd0, be[0]} + {2'd0, be[1]} + {2'd0, be[2]} + {2'd0, be[3]};
    assign m_haddr = {addr[31:2], place};
    assign m_htrans = req ? 2'b10 : 2'b00;
    assign m_hwrite = we;
    assign m_hsize = bytes == 3'd1 ? 3'd0 : bytes == 3'd2 ? 3'd1 : 3'd2;
    assign gnt = m_hready;
    assign rvalid = transfers && m_hready;
    assign rdata = m_hrdata;
    assign err = m_hresp;
    always @(posedge clk) begin
        if (!rst_n) transfers <= 1'b0;
        else if (m_hready) begin
            transfers <= req;
            m_hwdata <= wdata;
        end
    end
