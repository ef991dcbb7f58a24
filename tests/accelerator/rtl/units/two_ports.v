// mac8 with its memory port taken apart: loads go through a_, stores through b_.
module two_ports (
    input         clk,
    input         rst_n,
    output        irq,
    input         s_psel,
    input         s_penable,
    input         s_pwrite,
    input  [11:0] s_paddr,
    input  [31:0] s_pwdata,
    output [31:0] s_prdata,
    output        a_req,
    input         a_gnt,
    output [31:0] a_addr,
    output        a_we,
    output [31:0] a_wdata,
    input         a_rvalid,
    input  [31:0] a_rdata,
    input         a_err,
    output        b_req,
    input         b_gnt,
    output [31:0] b_addr,
    output        b_we,
    output  [3:0] b_be,
    output [31:0] b_wdata,
    input         b_rvalid,
    input  [31:0] b_rdata,
    input         b_err
);
    wire req, we;
    wire [31:0] addr, wdata;
    wire [3:0] be;
    reg waits;  // for an answer: the ports answer in no order between them
    assign a_req = req && !we && !waits;
    assign b_req = req && we && !waits;
    assign {a_addr, b_addr} = {addr, addr};
    assign {a_wdata, b_wdata} = {wdata, wdata};
    assign {a_we, b_we} = 2'b01;
    assign b_be = be;
    wire gnt = a_req && a_gnt || b_req && b_gnt;
    always @(posedge clk) waits <= rst_n && (gnt || waits && !(a_rvalid || b_rvalid));

    mac8 unit (
        .clk(clk), .rst_n(rst_n), .irq(irq),
        .s_psel(s_psel), .s_penable(s_penable), .s_pwrite(s_pwrite), .s_paddr(s_paddr),
        .s_pwdata(s_pwdata), .s_prdata(s_prdata),
        .m_req(req), .m_gnt(gnt), .m_addr(addr), .m_we(we), .m_be(be), .m_wdata(wdata),
        .m_rvalid(a_rvalid || b_rvalid), .m_rdata(a_rdata), .m_err(a_rvalid && a_err || b_rvalid && b_err)
    );
endmodule
