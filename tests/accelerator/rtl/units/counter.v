// Counts cycles: a register of OBI that is read and written, and nothing else.
module counter (
    input             clk,
    input             rst_n,
    input             req,
    input             we,
    input      [11:0] addr,
    input      [31:0] wdata,
    output reg        rvalid,
    output reg [31:0] rdata
);
    reg [31:0] count;
    always @(posedge clk) begin
        rvalid <= req && rst_n;
        rdata <= count;
        count <= !rst_n ? 0 : req && we ? wdata : count + 1;
    end
endmodule
